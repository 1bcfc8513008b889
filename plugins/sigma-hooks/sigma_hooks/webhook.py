"""Post to a webhook when training ends or fails, or when a criterion begins to hold."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from attrs import define, field

from sigma_hooks.notification import PATIENCE, Announcement, Notification, check_reference, read_secret
from sigma_kernel.errors import SigmaConfigError


def _reference(hook: Any, attribute: Any, given: str) -> None:
    check_reference("Webhook.url", given)


class _NoRedirect(HTTPRedirectHandler):
    """Refuse redirects: the address is a secret, and what is posted is for that server."""

    def redirect_request(self, *given: Any, **more: Any) -> None:
        """Return no request: the answer is an error then."""


@define(eq=False, kw_only=True)
class Webhook(Notification):
    """Post JSON to a webhook at the end, after a failure, and when the criterion ``when`` begins to hold.

    Its ``text`` is what Slack, Mattermost and others with their format show; ``event``, ``run``, ``epoch``,
    ``iteration``, ``values`` and ``why`` are for programs.

    Args:
        url: Where the address of the webhook is: ``$NAME``, an environment variable, or the path of a file.
        on: The events that are told: ``end``, ``failure``, and ``plateau``: the first of the firings in a row at which
            the criterion ``when`` holds.
        values: Addresses of values that are told.
    """

    url: str = field(kw_only=False, validator=_reference)

    def deliver(self, notice: Announcement) -> None:
        """Post a notice."""
        url = read_secret(self.url)
        if " " in url or not url.isprintable():  # the errors of libraries quote such addresses
            raise SigmaConfigError(f"what {self.url} holds has spaces or control characters, which no address has")
        if urlsplit(url).scheme not in ("http", "https"):
            raise SigmaConfigError(f"what {self.url} holds is not an address that begins with https://")
        body = json.dumps(notice.to_json()).encode()
        request = Request(url, body, {"Content-Type": "application/json", "User-Agent": "sigma"}, method="POST")
        build_opener(_NoRedirect).open(request, timeout=PATIENCE).close()

    def describe(self, error: Exception) -> str:
        """Return why a delivery failed, without the address."""
        if isinstance(error, HTTPError):
            return f"the server answered {error.code}"
        if isinstance(error, URLError):
            inner = error.reason
            return super().describe(inner) if isinstance(inner, Exception) else "the server cannot be reached"
        if isinstance(error, ValueError):
            return f"what {self.url} holds is not an address"
        return super().describe(error)
