"""Send an e-mail when training ends or fails, or when a criterion begins to hold."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from ipaddress import ip_address
from typing import Any

from attrs import define, field

from sigma_hooks.notification import PATIENCE, Announcement, Notification, check_reference, read_secret
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import in_, whole

SECURITIES = ("starttls", "tls", "none")
PORTS = {"starttls": 587, "tls": 465, "none": 25}


def _reference(hook: Any, attribute: Any, given: str) -> None:
    if given and not given.startswith(("$", "/", "./", "../", "~")):
        raise SigmaConfigError(
            "Email.password: settings are written to the run folder, and this is a secret. Put it into an environment "
            "variable, and write $NAME; or into a file, and write its path, such as ./mail.password."
        )
    check_reference("Email.password", given)


def _address(hook: Any, attribute: Any, given: str) -> None:
    if "@" not in given or any(sign in given for sign in "\r\n"):
        raise SigmaConfigError(f"Email.{attribute.name}: {given!r:.100} is not an e-mail address.")


def _addresses(hook: Any, attribute: Any, given: Sequence[str]) -> None:
    if isinstance(given, str) or not given:
        raise SigmaConfigError(f"Email.to: must be a list of addresses (got {given!r:.100}).")
    for address in given:
        _address(hook, attribute, address)


def _user(hook: Any, attribute: Any, given: str) -> None:
    if given and hook.security == "none" and not _is_loopback(hook.server):
        raise SigmaConfigError(
            f"Email.user: {hook.server!r:.100} would be sent the password unencrypted. Choose security 'starttls' or "
            "'tls'; or leave the user out."
        )


def _is_loopback(server: str) -> bool:
    """Return whether a server is on this machine."""
    try:
        return server == "localhost" or ip_address(server).is_loopback
    except ValueError:
        return False


@define(eq=False, kw_only=True)
class Email(Notification):
    """Send an e-mail at the end, after a failure, and when the criterion ``when`` begins to hold.

    Args:
        to: Addresses of those who are told.
        sender: Address of the sender.
        server: Name of the SMTP server.
        port: Its port; by default 587 for ``starttls``, 465 for ``tls`` and 25 for ``none``.
        security: How the connection is encrypted: ``starttls`` after it was opened, ``tls`` from the beginning, or
            ``none``: then only a server on this machine is given a password.
        user: Name to log in with; without one, nobody logs in.
        password: Where the password is: ``$NAME``, an environment variable, or the path of a file.
        on: The events that are told: ``end``, ``failure``, and ``plateau``: the first of the firings in a row at which
            the criterion ``when`` holds.
        values: Addresses of values that are told.
    """

    to: Sequence[str] = field(validator=_addresses)
    sender: str = field(validator=_address)
    server: str
    port: int = field(default=0, validator=whole)
    security: str = field(default="starttls", validator=in_(SECURITIES))
    user: str = field(default="", validator=_user)
    password: str = field(default="", validator=_reference)

    def deliver(self, notice: Announcement) -> None:
        """Send a notice."""
        secret = read_secret(self.password) if self.password else ""
        context = ssl.create_default_context()
        port = self.port or PORTS[self.security]
        encrypted = self.security == "tls"
        opened = (
            smtplib.SMTP_SSL(self.server, port, timeout=PATIENCE, context=context)
            if encrypted
            else smtplib.SMTP(self.server, port, timeout=PATIENCE)
        )
        with opened as smtp:
            if self.security == "starttls":
                smtp.starttls(context=context)
            if self.user:
                smtp.login(self.user, secret)
            smtp.send_message(self.write_message(notice))

    def write_message(self, notice: Announcement) -> EmailMessage:
        """Return the e-mail of a notice."""
        message = EmailMessage()
        message["Subject"], message["From"] = notice.title, self.sender
        message["To"], message["Date"] = ", ".join(self.to), formatdate()
        message["Message-ID"] = make_msgid(domain=self.sender.rpartition("@")[2])
        message.set_content(notice.text)
        return message

    def describe(self, error: Exception) -> str:
        """Return why a delivery failed, without secrets."""
        if isinstance(error, smtplib.SMTPAuthenticationError):
            return f"{self.server} does not accept the user and the password"
        if isinstance(error, smtplib.SMTPResponseException):
            return f"{self.server} answered {error.smtp_code}"
        if isinstance(error, smtplib.SMTPRecipientsRefused):
            return f"{self.server} refuses {', '.join(error.recipients)}"
        if isinstance(error, smtplib.SMTPServerDisconnected):
            return f"{self.server} ended the connection. Check the port, and that it is the one for {self.security!r}"
        if isinstance(error, smtplib.SMTPNotSupportedError):
            return f"{self.server} does not offer {_find_lack(error)}. Choose another port, 'security' or server"
        if isinstance(error, smtplib.SMTPException):  # without an answer: of the methods to log in
            return f"{self.server} offers no way to log in with a password. Choose another server, or leave 'user' out"
        return super().describe(error)


def _find_lack(error: smtplib.SMTPNotSupportedError) -> str:
    """Return what a server does not offer."""
    lacks = {"STARTTLS": "encryption by 'starttls'", "AUTH": "to log in", "SMTPUTF8": "addresses beyond ASCII"}
    return next((text for word, text in lacks.items() if word in str(error)), "what this needs")
