"""Say hello."""

import click


@click.command()
@click.argument("name", default="world")
def greet(name: str) -> None:
    """Say hello to NAME."""
    click.echo(f"Hello, {name}.")
