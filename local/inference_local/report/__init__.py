"""The report of a local run: as data, in the terminal and as an HTML page."""

from inference_local.report.html import render_html
from inference_local.report.report_builder import as_dict, build_report, curl_line
from inference_local.report.report_types import ModelRun, Report
from inference_local.report.terminal import print_report

__all__ = ["ModelRun", "Report", "as_dict", "build_report", "curl_line", "print_report", "render_html"]
