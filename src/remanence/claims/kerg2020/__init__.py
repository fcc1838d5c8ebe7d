"""Claims of Kerg et al. 2020; importing it registers them."""

from . import (  # noqa: F401  (each registers its claims)
    _attention_maps,
    _chains_of_steps,
    _copy_and_denoise,
    _gradient_norms,
    _gradient_paths,
    _minigrid,
    _parameter_gradients,
    _sparse_attention,
    _text_and_pictures,
    _training_memory,
    _uniform_attention,
)
