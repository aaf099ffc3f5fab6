"""The groups of tools/gpu-check: what has to be seen on a real GPU. Standard library only."""
