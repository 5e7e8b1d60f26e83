"""The command `demo`: a batch on an AWS inside this process, with GPUs and a spot interruption."""
