"""The documents that this package makes work, by the numbers under which it speaks of them."""

from __future__ import annotations

DOCUMENTS = {
    "000": "Kerg et al. 2020, Untangling tradeoffs between recurrence and self-attention in neural networks",
    "001": "Ke et al. 2017, Sparse Attentive Backtracking: long-range credit assignment in recurrent networks",
    "002": "Miller and Hardt 2018, When recurrent models don't need to be recurrent",
    "003": "Shen 2019, Mutual information scaling and expressive power of sequence models",
    "004": "a course assignment on vanishing gradients, optimisers and linear-time attention, with solutions",
}
"""Number and short reference; CITATION.cff has the full ones."""
