"""Measurements on any torch sequence model: how far gradient and information reach, and what that costs."""

from ._paths import GradientPaths, gradient_paths

__all__ = ["gradient_paths", "GradientPaths"]
