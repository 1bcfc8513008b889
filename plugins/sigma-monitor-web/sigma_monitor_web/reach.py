"""How clients reach a server besides its address: host names, TLS, and a proxy in front of it."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from attrs import frozen

from sigma_http.guard import name_of
from sigma_kernel.errors import SigmaConfigError

BASE = re.compile(r"(?:/[\w.~-]++)++")


@frozen
class ServerReach:
    """The names, the encryption and the proxy of a server.

    Args:
        names: Host names by which clients know the server.
        certificate: A PEM file with the certificate of the server, and those that it is signed by.
        key: A PEM file with its private key, without a password.
        proxy: Addresses or networks of the proxies whose X-Forwarded-For and X-Forwarded-Proto are believed.
        base: The path below which a proxy serves it, such as ``/sigma``.
    """

    names: Sequence[str] = ()
    certificate: str = ""
    key: str = ""
    proxy: Sequence[str] = ()
    base: str = ""

    @property
    def encrypts(self) -> bool:
        """Return whether the server speaks TLS."""
        return bool(self.certificate)

    def check(self, where: str) -> None:
        """Raise SigmaConfigError for names, files, addresses or a path that cannot be."""
        for name in self.names:
            if name_of(name) != name.lower() or ":" in name.strip("[]"):
                raise SigmaConfigError(
                    f"{where}.names: {name!r:.100} is not a host name. Write it without scheme and port."
                )
        for address in self.proxy:
            try:
                ip_network(address, strict=False)
            except ValueError:
                raise SigmaConfigError(
                    f"{where}.proxy: {address!r:.100} is not an address. Give that of the proxy, such as 127.0.0.1."
                ) from None
        if self.base and not BASE.fullmatch(self.base):
            raise SigmaConfigError(f"{where}.base: {self.base!r:.100} is not a path. Write it like /sigma.")
        if bool(self.certificate) != bool(self.key):
            raise SigmaConfigError(f"{where}: TLS needs both files, certificate and key. Give both, or neither.")
        if self.certificate:
            _check_pair(where, self.certificate, self.key)

    def server_settings(self) -> Mapping[str, Any]:
        """Return the settings of uvicorn."""
        files = {"ssl_certfile": self.certificate, "ssl_keyfile": self.key} if self.certificate else {}
        proxies = ",".join(str(ip_network(address, strict=False)) for address in self.proxy)
        return {**files, "proxy_headers": bool(self.proxy), "forwarded_allow_ips": proxies}


def _check_pair(where: str, certificate: str, key: str) -> None:
    """Raise SigmaConfigError unless two files are a certificate and its private key."""
    for setting, path in ("certificate", certificate), ("key", key):
        if not Path(path).is_file():
            raise SigmaConfigError(f"{where}.{setting}: {path}: there is no such file. Check the path.")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: "")
    except OSError as error:  # an SSLError is one
        raise SigmaConfigError(
            f"{where}: {certificate} and {key} are no certificate with its private key, in PEM and without a password: "
            f"{error.strerror or error}. Check both files."
        ) from None
