"""One self-contained HTML page that shows a fit, or compares several fits to the same data."""

from deepmf.report.compare import Ranking
from deepmf.report.page import write_report

__all__ = ["Ranking", "write_report"]
