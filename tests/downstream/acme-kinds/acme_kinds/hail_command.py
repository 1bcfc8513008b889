"""Say hello."""

import click


@click.command()
@click.argument("name", default="world")
def hail(name: str) -> None:
    """Say hello."""
    click.echo(f"Hello, {name}.")
