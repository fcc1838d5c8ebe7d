"""What the papers show and no claim measures, with the reason: so that nobody takes silence for agreement."""

from __future__ import annotations

NOT_MEASURED: dict[str, tuple[str, ...]] = {
    "kerg2020": (
        "Tables 1 to 5, cells that were not run: the claims of whole tables count those that were",
        "figures 4, 5, 6 and 8, learning curves: no number of theirs is printed",
    ),
    "ke2017": (
        "Tables 1 to 8, cells that were not run: the claims of whole tables count those that were; one row of Table 3 "
        "is also checked for whether its numbers go together",
        "section 7.2, gradient clipping: no number is printed",
    ),
    "miller2018": (
        "figure 2, perplexity against context, and the distance between weights of recurrent and truncated training: "
        "curves, of which no number is printed",
    ),
    "shen2019": ("figures 2, 3b, 3c, 8 and 10 over a range of widths: models of text were trained at one width",),
}
"""By paper."""
