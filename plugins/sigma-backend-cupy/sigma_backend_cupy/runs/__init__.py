"""Launches, memory and bursts."""
