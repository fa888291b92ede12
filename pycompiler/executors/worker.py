"""A worker process: reads calls from its input, writes what they return: see ``main``.

A message is a count of bytes and that many bytes of a pickle. A call is a function and its
arguments. An answer is a pair: whether the call returned, and what it returned or raised.
"""

from __future__ import annotations

import os
import pickle
import struct
from typing import IO

#: The count of bytes before a message.
COUNT = struct.Struct("<Q")


def write_message(stream: IO[bytes], content: object) -> None:
    """Write one message. An exception before the first byte if it cannot be pickled."""
    data = pickle.dumps(content)
    stream.write(COUNT.pack(len(data)) + data)
    stream.flush()


def main() -> None:
    """Answer calls until the input ends."""
    calls = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    # What a call prints must not come between the answers.
    os.dup2(2, 1)
    while head := calls.read(COUNT.size):
        function, arguments = pickle.loads(calls.read(COUNT.unpack(head)[0]))
        try:
            write_message(answers, (True, function(*arguments)))
        except Exception as problem:
            write_message(answers, (False, _portable(problem)))


def _portable(problem: Exception) -> Exception:
    """Return the exception, or its text if another process could not read it."""
    try:
        again = pickle.loads(pickle.dumps(problem))
    except Exception:  # whatever the class of the exception does
        again = None
    if type(again) is type(problem) and str(again) == str(problem):
        return problem
    return RuntimeError(f"{type(problem).__name__}: {problem}")
