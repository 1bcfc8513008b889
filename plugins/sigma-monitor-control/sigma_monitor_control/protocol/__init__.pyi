# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_monitor_control.protocol.conversation import Conversation as Conversation
from sigma_monitor_control.protocol.conversation import READ as READ
from sigma_monitor_control.protocol.conversation import SCOPES as SCOPES
from sigma_monitor_control.protocol.conversation import STEER as STEER
from sigma_monitor_control.protocol.conversation import at_once as at_once
from sigma_monitor_control.protocol.data import DATA as DATA
from sigma_monitor_control.protocol.documents import LONGEST as LONGEST
from sigma_monitor_control.protocol.documents import PROTOCOL as PROTOCOL
from sigma_monitor_control.protocol.layers import LAYERS as LAYERS
from sigma_monitor_control.protocol.mapping import ROWS as ROWS
from sigma_monitor_control.protocol.media import MEDIA as MEDIA
from sigma_monitor_control.protocol.reading import Later as Later
from sigma_monitor_control.protocol.reading import READS as READS
from sigma_monitor_control.protocol.recalls import READS_RECALLS as READS_RECALLS
from sigma_monitor_control.protocol.recalls import RECALLS as RECALLS
from sigma_monitor_control.protocol.steering import STEERS as STEERS
from sigma_monitor_control.protocol.subscriptions import SUBSCRIBES as SUBSCRIBES
from sigma_monitor_control.protocol.subscriptions import Subscription as Subscription
from sigma_monitor_control.protocol.values import to_json as to_json
