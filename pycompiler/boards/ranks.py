"""The processes of a run, one per board: who they are, and who is lost."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import TCPStore

from ..errors import PycompilerError, error

_BEATS = 8  # signs of life in a time-out
_LONGEST = 1e9  # seconds
_LAST_PORT = 65535
_LOOKED = 3  # so many of them: how long a rank that misses a message looks for signs


class Ranks:
    """A group of processes that talk through torch.distributed with gloo.

    ``rank``, ``size``, ``address`` and ``port`` come from the environment variables that `torchrun`
    sets, unless they are given. ``timeout`` is in seconds: if a message does not come, or the
    connection breaks, the ranks that give no sign of life are reported in that time (P0811). Half
    of it is the wait for the message.
    """

    def __init__(
        self,
        *,
        rank: int | None = None,
        size: int | None = None,
        address: str | None = None,
        port: int | None = None,
        timeout: float = 120.0,
    ):
        self.size = _number("WORLD_SIZE", size, 1, None)
        self.rank = _number("RANK", rank, 0, self.size - 1)
        if not 0 < timeout < _LONGEST:
            raise error("P0704", name="timeout", value=repr(timeout), legal="a number of seconds")
        self.timeout = timeout
        place = address or os.environ.get("MASTER_ADDR", "localhost")
        self._place = place, _number("MASTER_PORT", port, 0, _LAST_PORT)
        limit = timedelta(seconds=timeout)
        self._done = threading.Event()
        with self.talking("the start"):
            # torchrun keeps a store of its own at that port.
            kept = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
            self._store = self._connected(owner=self.rank == 0 and not kept)
            self._store.set_timeout(limit / 2)
            threading.Thread(target=self._beat, daemon=True).start()
            dist.init_process_group(
                "gloo", store=self._store, rank=self.rank, world_size=self.size, timeout=limit / 2
            )

    def _connected(self, *, owner: bool) -> TCPStore:
        """Return the store, which keeps the list of ranks; it waits for its owner only."""
        limit = timedelta(seconds=self.timeout)
        return TCPStore(*self._place, self.size, owner, limit, wait_for_workers=False)

    def close(self) -> None:
        """Leave the group, once all ranks are here."""
        with self.talking("the end"):
            dist.barrier()
        self._done.set()
        dist.destroy_process_group()

    @contextmanager
    def talking(self, what: str) -> Iterator[None]:
        """Report the ranks that are lost if the body fails to talk to them. P0811."""
        try:
            yield
        except (RuntimeError, ConnectionError) as problem:
            raise self._lost(what, problem) from problem

    def sum(self, tensor: torch.Tensor, what: str) -> None:
        """Replace a tensor by the sum of those of all ranks, in place. P0811."""
        with self.talking(what):
            dist.all_reduce(tensor)

    def copy(self, tensor: torch.Tensor, source: int, what: str) -> None:
        """Replace a tensor by that of the rank ``source``, in place. P0811."""
        with self.talking(what):
            dist.broadcast(tensor, source)

    def _beat(self) -> None:
        """Count in the store while this process lives."""
        try:
            store = self._connected(owner=False)
            while not self._done.wait(self.timeout / _BEATS):
                store.add(_key(self.rank), 1)
        except (RuntimeError, ConnectionError):
            return  # rank 0 has ended; who talks to it reports that

    def _counts(self) -> list[int]:
        return [self._store.add(_key(rank), 0) for rank in range(self.size)]

    def _lost(self, what: str, problem: Exception) -> PycompilerError:
        others = [rank for rank in range(self.size) if rank != self.rank]
        try:
            before = self._counts()
            time.sleep(_LOOKED * self.timeout / _BEATS)
            after = self._counts()
            silent = [rank for rank in others if before[rank] == after[rank]]
            lost = ", ".join(map(str, silent)) or "none"
        except (AttributeError, RuntimeError, ConnectionError):
            lost = "0, which keeps the list of ranks" if self.rank else "none"
        reason = (str(problem).strip() or type(problem).__name__).splitlines()[0][:160]
        return error("P0811", rank=self.rank, what=what, lost=lost, reason=reason)


def _key(rank: int) -> str:
    return f"pycompiler.alive.{rank}"


def _number(variable: str, given: int | None, first: int, last: int | None) -> int:
    text = os.environ.get(variable, "") if given is None else str(given)
    number = int(text) if text.isascii() and text.isdecimal() else -1
    if number < first or (last is not None and number > last):
        end = "on" if last is None else f"to {last}"
        legal = f"a number from {first} {end}, as torchrun sets it"
        raise error("P0704", name=variable, value=repr(text), legal=legal)
    return number
