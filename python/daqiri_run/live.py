"""Reads the blocks of a running script's s:share without a copy (runtime/session/share/PROTOCOL.md)."""
from __future__ import annotations

import array
import json
import mmap
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import warnings
import weakref
from typing import Any, Optional, Sequence

import numpy as np

from . import _ELEMENTS, _layout

__all__ = ["Block", "Live", "Run", "attach", "run"]

_HELLO, _SHAPE, _BLOCK, _RELEASE, _END = 1, 2, 3, 4, 5
_MESSAGE = 64  # bytes of a message without its text
_LONGEST = _MESSAGE + 65536


class Block:
    """A block of a stream. Its views are valid until the next block is read, or release() is called."""

    def __init__(self, live: Live, shape: _Shape, index: int, generation: int, data_at: int, missed: int):
        self._live, self._shape, self._index, self._generation, self._at = live, shape, index, generation, data_at
        self._released, self._data, self._arrays = False, None, []  # arrays: weak references to those that all views refer to
        h = shape.layout
        at = h["header_bytes"] + index * h["block_header_bytes"]
        header = bytes(memoryview(shape.headers)[at:at + h["block_header_bytes"]])
        self.missed = missed  # blocks that this reader missed since the last one
        (self.batch_id, self.ordinal, self.first_ns, self.last_ns, self.packets, self.present_cells, self.flags,
         self.fill) = struct.unpack_from("<QQqqIIIi", header, 8)
        bits = np.frombuffer(header, np.uint8, (h["present_bits"] + 7) // 8, h["present_at"])
        self.present = np.unpackbits(bits, bitorder="little")[:h["present_bits"]].astype(bool)
        self.extra = np.frombuffer(header, "<u8", h["slots"], h["extra_at"]) if h["extra_at"] else None

    @property
    def data(self) -> np.ndarray:
        """The data, of shape (slots, elements): a read-only view of the program's memory. 4-bit integers are bytes, two a byte, and bf16 are 16-bit
        integers. Raises ValueError after the release."""
        if self._data is None:
            self._data = self._array(self._shape.region)
        return self._data

    def _array(self, memory: mmap.mmap) -> np.ndarray:
        if self._released:
            raise ValueError(f"the block of batch {self.batch_id} was released: copy() keeps the data of a block")
        element = self._shape.element
        array = np.frombuffer(memory, element, self._shape.data_bytes // element.itemsize, self._at)
        self._arrays.append(weakref.ref(array))
        return array.reshape(self._shape.layout["slots"], -1)

    def samples(self) -> np.ndarray:
        """The elements of the data in one dimension, a read-only view. Raises TypeError for types that numpy lacks: int4 and bf16."""
        if self._shape.dtype_name in ("int4", "bf16"):
            raise TypeError(f"numpy has no type {self._shape.dtype_name}: use data")
        return self.data.reshape(-1)

    def copy(self) -> np.ndarray:
        """A copy of the data, which stays valid."""
        return self.data.copy()

    def tensor(self) -> np.ndarray:
        """The data as a writable array for torch.from_dlpack and others that refuse read-only arrays. What is written to it stays in this process;
        a page that was written no longer shows later blocks, so copy the array before changing it in place."""
        return self._array(self._shape.private())

    def __dlpack__(self, **options: Any) -> Any:
        return self.tensor().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the host

    def release(self) -> None:
        """Gives the block back; the program may then overwrite it. Further calls have no effect."""
        if not self._released:
            self._released, self._data = True, None
            self._live._give_back(self)

    def _in_use(self) -> bool:
        """Whether a view of a released block still exists."""
        return any(a() is not None for a in self._arrays)

    def __repr__(self) -> str:
        return f"<block of batch {self.batch_id}, {self.packets} packets{', released' if self._released else ''}>"


class _Shape:
    """The memory of blocks of one shape."""

    def __init__(self, name: str, region_fd: int, headers_fd: int):
        try:
            self.region = mmap.mmap(region_fd, os.fstat(region_fd).st_size, prot=mmap.PROT_READ)
            self.headers = mmap.mmap(headers_fd, os.fstat(headers_fd).st_size, prot=mmap.PROT_READ)
        finally:
            os.close(headers_fd)
        self._fd, self._private = region_fd, None
        head = self.headers[:4096]
        self.layout = _layout(name, head)
        self.element = np.dtype(_ELEMENTS[self.layout["dtype"]])
        self.dtype_name = head[48:64].rstrip(b"\0").decode()
        self.data_bytes = self.layout["slots"] * self.layout["slot_bytes"]
        at, n = struct.unpack_from("<II", head, 160)
        self.text = head[at:at + n].decode()

    def private(self) -> mmap.mmap:
        """A copy-on-write mapping of the region."""
        if self._private is None:
            self._private = mmap.mmap(self._fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        return self._private

    def __del__(self) -> None:
        os.close(self._fd)


class Live:
    """The blocks of a stream, by iteration. It ends with the run; reason then has the program's text."""

    def __init__(self, sock: socket.socket, path: str):
        self._socket, self._path, self._shape = sock, path, None
        self._block = self._before = None
        self.missed = 0  # blocks that this reader missed so far
        self.reason = ""  # why the stream ended
        kind, message, text = self._receive()
        if kind == _END:
            sock.close()
            raise ConnectionRefusedError(f"cannot attach to {path}: {text['reason']}")
        if kind != _HELLO or text.get("version") != 1:
            sock.close()
            raise ConnectionError(f"cannot attach to {path}: it is not a stream of s:share of this version")
        self.name, self.pid, self.lend = text["name"], text["pid"], text["lend"]

    @property
    def header(self) -> str:
        """The option header of s:share, as text; empty before the first block."""
        return self._shape.text if self._shape else ""

    def _receive(self) -> tuple[int, bytes, Optional[dict]]:
        """Returns kind, message and JSON text of the next message; _END once the program has closed the connection."""
        fds = array.array("i")
        try:
            message, ancillary, _, _ = self._socket.recvmsg(_LONGEST, socket.CMSG_SPACE(2 * fds.itemsize), socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            message, ancillary = b"", []
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(data[:len(data) - len(data) % fds.itemsize])
        if len(message) < _MESSAGE:
            return _END, b"", {"reason": "the program has ended"}
        kind, length = struct.unpack_from("<II", message)
        if kind == _SHAPE and len(fds) == 2:
            self._shape = _Shape(self._path, *fds)
        return kind, message, json.loads(message[_MESSAGE:_MESSAGE + length]) if kind in (_HELLO, _END) else None

    def _give_back(self, block: Block) -> None:
        try:
            self._socket.send(struct.pack("<III", _RELEASE, block._index, block._generation).ljust(_MESSAGE, b"\0"))
        except OSError:
            pass  # the program has ended: the memory stays as it is

    def _report(self, block: Optional[Block]) -> None:
        if block is not None and block._in_use():
            warnings.warn(f"a view of the block of batch {block.batch_id} is still in use after its release: its content changes; use copy()",
                          RuntimeWarning, stacklevel=3)

    def __iter__(self) -> Live:
        return self

    def __next__(self) -> Block:
        if self._block is not None:
            self._block.release()
        before, self._before, self._block = self._before, self._block, None
        self._report(before)  # a turn later: a variable of the loop's body has its new value by now
        while self._socket.fileno() >= 0:
            kind, message, text = self._receive()
            if kind == _END:
                self.reason = text["reason"]
                if message:
                    self.missed += struct.unpack_from("<Q", message, 24)[0]
                self._socket.close()
            elif kind == _BLOCK:
                index, generation, data_at, missed = struct.unpack_from("<II4xQQ", message, 4)
                self.missed += missed
                self._block = Block(self, self._shape, index, generation, data_at, missed)
                return self._block
        raise StopIteration

    def close(self) -> None:
        """Detaches from the stream. Further calls have no effect."""
        if self._block is not None:
            self._block.release()
        for block in (self._before, self._block):
            self._report(block)
        self._before = self._block = None
        self._socket.close()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def attach(name: str) -> Live:
    """Attaches to the stream of s:share{ name = name }, or to the socket at a path. Raises FileNotFoundError or ConnectionRefusedError if there is none,
    PermissionError for another user's stream, ConnectionRefusedError if it has all the readers that it may have."""
    path = name
    if "/" not in name:
        base = os.environ.get("XDG_RUNTIME_DIR")
        folder = os.path.join(base, "daqiri-run") if base else os.path.join(tempfile.gettempdir(), f"daqiri-run-{os.getuid()}", "daqiri-run")
        path = os.path.join(folder, name)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    try:
        sock.connect(path)
    except OSError as e:
        sock.close()
        raise type(e)(e.errno, f"cannot attach to {name}: {e.strerror}; is a script with s:share running?", path) from None
    return Live(sock, path)


class Run:
    """A run of a script and the blocks that it lends, by iteration. After the last one, summary has the run's summary and returncode its exit code."""

    def __init__(self, command: Sequence[str], stream: str):
        self._folder, self._stream, self.live = tempfile.mkdtemp(prefix="daqiri-run-"), stream, None
        self.summary, self.returncode = None, None
        path = os.path.join(self._folder, "summary.json")
        try:
            self._process = subprocess.Popen([command[0], "--summary-json", path, *command[1:]], env=dict(os.environ, XDG_RUNTIME_DIR=self._folder))
        except OSError:
            shutil.rmtree(self._folder)
            raise

    def _attach(self) -> Live:
        path = os.path.join(self._folder, "daqiri-run", self._stream)
        while not os.path.exists(path):
            if self._process.poll() is not None:
                self.close()
                raise RuntimeError(f"the script ended with exit code {self.returncode} before it had a stream {self._stream}")
            time.sleep(0.01)
        return attach(path)

    def __iter__(self) -> Run:
        return self

    def __next__(self) -> Block:
        if self.returncode is not None:
            raise StopIteration
        if self.live is None:
            self.live = self._attach()
        try:
            return next(self.live)
        except StopIteration:
            self._finish()
            raise

    def _finish(self) -> None:
        self.returncode = self._process.wait()
        try:
            with open(os.path.join(self._folder, "summary.json")) as f:
                self.summary = json.load(f)
        except FileNotFoundError:
            pass  # the program was killed, or refused its arguments
        shutil.rmtree(self._folder)

    def close(self) -> None:
        """Detaches, ends the run as Ctrl-C does (exit code 130), and waits for it. Further calls have no effect."""
        if self.live is not None:
            self.live.close()
        if self.returncode is None:
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGINT)
            self._finish()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def run(script: str, *, stream: str = "live", program: str = "daqiri-run", **args: Any) -> Run:
    """Starts a script with arguments (--NAME VALUE) and attaches to its s:share{ name = stream }, which must not set a path. Raises FileNotFoundError
    without the program, and RuntimeError, at the first block, if the script ends before it has the stream."""
    return Run([program, script] + [f"--{name}={value}" for name, value in args.items()], stream)
