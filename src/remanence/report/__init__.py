"""Results as one self-contained HTML page: runs, comparisons, probes, information curves, claims."""

from remanence.report._page import write_report

__all__ = ["write_report"]
