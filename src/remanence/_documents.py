"""The five papers that this package makes work: the one place that knows their names."""

from __future__ import annotations

from dataclasses import dataclass

from remanence._validate import one_of


@dataclass(frozen=True)
class Paper:
    """One of the papers, by the names under which this package speaks of it.

    Args:
        key: in ids, options and folders, such as ``"kerg2020"``.
        number: under which it went before; still understood wherever a key is.
        name: in sentences, such as ``"Kerg et al. 2020"``.
        title: in full.
    """

    key: str
    number: str
    name: str
    title: str

    @property
    def reference(self) -> str:
        """Name and title in one line; CITATION.cff has the full one."""
        return f"{self.name}, {self.title}"


PAPERS: dict[str, Paper] = {
    paper.key: paper
    for paper in (
        Paper(
            "kerg2020",
            "000",
            "Kerg et al. 2020",
            "Untangling tradeoffs between recurrence and self-attention in neural networks",
        ),
        Paper(
            "ke2017",
            "001",
            "Ke et al. 2017",
            "Sparse Attentive Backtracking: long-range credit assignment in recurrent networks",
        ),
        Paper(
            "miller2018",
            "002",
            "Miller and Hardt 2018",
            "When recurrent models don't need to be recurrent",
        ),
        Paper(
            "shen2019",
            "003",
            "Shen 2019",
            "Mutual information scaling and expressive power of sequence models",
        ),
        Paper(
            "notes",
            "004",
            "Lecture notes",
            "a course assignment on vanishing gradients, optimisers and linear-time attention, with solutions",
        ),
    )
}
"""By their keys, in the order in which pages list them."""

DOCUMENTS: dict[str, str] = {key: paper.reference for key, paper in PAPERS.items()}
"""Key and short reference."""

_KEY_OF_NUMBER = {paper.number: key for key, paper in PAPERS.items()}


def paper_key(name: str) -> str:
    """The key of a paper that is named by its key or by its old number.

    Example:
        >>> paper_key("kerg2020"), paper_key("000")
        ('kerg2020', 'kerg2020')
    """
    return one_of("paper", _KEY_OF_NUMBER.get(name, name), PAPERS)
