"""The protocol: JSON documents to and from a :class:`~sigma_kernel.contracts.View`, over any connection.

::

    conversation = Conversation(view, scopes=frozenset({"read"}))
    for line in conversation.receive('{"id": 1, "do": "status"}'):
        send(line)

docs/steering.md documents all of it.
"""

from sigma_kernel import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "conversation": "Conversation READ SCOPES STEER at_once",
        "data": "DATA",
        "documents": "LONGEST PROTOCOL",
        "layers": "LAYERS",
        "mapping": "ROWS",
        "media": "MEDIA",
        "reading": "Later READS",
        "recalls": "READS_RECALLS RECALLS",
        "steering": "STEERS",
        "subscriptions": "SUBSCRIBES Subscription",
        "values": "to_json",
    },
)
