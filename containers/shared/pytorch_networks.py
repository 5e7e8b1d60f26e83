"""The networks of the PyTorch images: ResNet with the names of torchvision's parameters, and a GPT.

They are written here, so that an image needs no torchvision. A parameter has the name that it has there, so weights
that were published for torchvision's `resnet50` fit.

ResNet: arXiv 1512.03385, with the stride in the 3 x 3 convolution, as in torchvision. GPT-2: Radford et al. 2019.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

EXPANSION = 4


class Bottleneck(nn.Module):  # type: ignore[misc]
    """1 x 1, 3 x 3 and 1 x 1 convolutions around a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * EXPANSION
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: Any = None
        if stride != 1 or inputs != outputs:
            projection = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.downsample = nn.Sequential(projection, nn.BatchNorm2d(outputs))

    def forward(self, x: Any) -> Any:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        return self.relu(self.bn3(self.conv3(x)) + shortcut)


class ResNet(nn.Module):  # type: ignore[misc]
    """Logits (n, classes) for images (n, 3, height, width)."""

    def __init__(self, blocks: tuple[int, ...], width: int, classes: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        inputs = width
        for number, count in enumerate(blocks):
            layer, inputs = _layer(inputs, width * 2**number, count, 2 if number else 1)
            self.add_module(f"layer{number + 1}", layer)
        self.layers = len(blocks)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(inputs, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Any) -> Any:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for number in range(self.layers):
            x = getattr(self, f"layer{number + 1}")(x)
        return self.fc(self.avgpool(x).flatten(1))


def _layer(inputs: int, width: int, count: int, stride: int) -> tuple[Any, int]:
    outputs = width * EXPANSION
    rest = [Bottleneck(outputs, width, 1) for _ in range(count - 1)]
    return nn.Sequential(Bottleneck(inputs, width, stride), *rest), outputs


class Block(nn.Module):  # type: ignore[misc]
    """Causal attention and two linear layers, each with a normalisation before it and a shortcut around it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_linear = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.linear = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        count, length, width = x.shape
        split = self.attention(self.before_attention(x)).view(count, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        mixed = attended(query, key, value).transpose(1, 2).reshape(count, length, width)
        x = x + self.projection(mixed)
        return x + self.linear(self.before_linear(x))


def attended(query: Any, key: Any, value: Any) -> Any:
    """Causal attention over (n, heads, length, features); PyTorch's own where it has one (2.0 and newer)."""
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    weights = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    later = torch.ones(weights.shape[-2:], dtype=torch.bool, device=weights.device).triu(1)
    return functional.softmax(weights.masked_fill(later, -math.inf), dim=-1).to(value.dtype) @ value


class Gpt(nn.Module):  # type: ignore[misc]
    """Logits (n, length, vocabulary) for the next token of each of (n, length) tokens."""

    def __init__(self, vocabulary: int, length: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens: Any) -> Any:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.out(self.norm(self.blocks(self.tokens(tokens) + self.places(places))))


def image_network(name: str, classes: int) -> Any:
    """resnet50, or resnet-tiny for tests."""
    return ResNet((3, 4, 6, 3), 64, classes) if name == "resnet50" else ResNet((1, 1), 8, classes)


def text_network(name: str, vocabulary: int, length: int) -> Any:
    """gpt: 86 million parameters, the size of GPT-2's smallest without its vocabulary; gpt-tiny for tests."""
    layers, width, heads = (12, 768, 12) if name == "gpt" else (2, 32, 2)
    return Gpt(vocabulary, length, layers, width, heads)
