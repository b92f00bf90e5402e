"""Chat as the server has it. Each method is one request of `authority.chat_requests`, under its name."""

from __future__ import annotations

from checkrein.doors.chat.keeping import Keeping
from checkrein.doors.chat.measuring import Measuring
from checkrein.doors.chat.offering import Offering
from checkrein.doors.chat.talking import Talking


class Chat(Keeping, Talking, Measuring, Offering):
    """Started on first need; safe to call from any thread."""
