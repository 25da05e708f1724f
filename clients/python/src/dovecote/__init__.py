"""A client of Dovecote, the self-hosted realtime voice gateway: text in while it is written, speech out, and what was heard of it."""

from .client import Client
from .context import Context
from .errors import ConnectionLost, ContextError, DovecoteError, Refused, SessionError
from .events import Commit, Done, Event, Flushed, Heard, Mark, Pressure, Sound, Word

__all__ = [
    "Client", "Commit", "ConnectionLost", "Context", "ContextError", "Done", "DovecoteError", "Event", "Flushed", "Heard",
    "Mark", "Pressure", "Refused", "SessionError", "Sound", "Word",
]  # fmt: skip
