# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_report.command import report as report
from sigma_report.explaining import Calibration as Calibration
from sigma_report.explaining import Importance as Importance
from sigma_report.explaining import calibrate as calibrate
from sigma_report.explaining import importance as importance
from sigma_report.explaining import saliency as saliency
from sigma_report.findings import describe as describe
from sigma_report.measures import scale_probabilities as scale_probabilities
from sigma_report.opening import open_archive as open_archive
from sigma_report.page import render_page as render_page
from sigma_report.sharing import share as share
