"""What the papers print and no claim measures, with the reason: so that nobody takes silence for agreement."""

from __future__ import annotations

NOT_MEASURED: dict[str, tuple[str, ...]] = {
    "kerg2020": (
        "Table 5 at T = 200 to 2000 and Table 2 at T = 300 to 2000: no model was trained at those lengths",
        "Table 1 at T = 5000 for orth-RNN, expRNN and SAB: they were asked up to T = 2000",
        "Table 3, accuracies of letters: bits a letter are compared instead",
        "figures 4, 5 and 6, training curves: those of T = 100 alone are kept, over far fewer updates",
    ),
    "ke2017": (
        "Tables 1 to 8, what trained models reach: nothing was trained with its settings; one row of Table 3 is "
        "checked for whether its numbers go together",
        "section 7.2, gradient clipping: not run",
    ),
    "miller2018": (
        "figure 2, the two perplexities, perplexity against context, and the distance between weights of recurrent and "
        "truncated training: no language model was trained for them",
    ),
    "shen2019": ("figures 2, 3b, 3c, 8 and 10 over a range of widths: models of text were trained at one width",),
}
"""By paper."""
