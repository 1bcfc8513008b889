"""The tests of these plugins run where they are installed: tests/installs/test_downstream.py."""

collect_ignore_glob = ["*-*"]
