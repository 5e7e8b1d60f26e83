"""Train ResNet-50 or a small GPT and measure it; see README.md next to this folder."""
