"""The curves of Sigma runs: in the terminal, as SVG, PNG and CSV."""
