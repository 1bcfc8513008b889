# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_plot.charts import Figure as Figure
from sigma_plot.charts import Svg as Svg
from sigma_plot.command import plot as plot
