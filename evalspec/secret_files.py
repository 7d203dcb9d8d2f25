"""Where do secrets lie?  Each in a file of its own, for its owner alone from the first byte, whole or not there, and never overwritten."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

from evalspec.errors import SecretError

SECRET_BYTES = 32
LARGEST_SECRET = 4096
_WITHOUT_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}


def write_once(path: Path, content: bytes) -> None:
    """Write a new file of mode 0600; raises FileExistsError where the name is taken, and any other OSError with nothing left behind."""
    partial = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        _name(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_secret(path: Path) -> bytes:
    """Return the secret in a file; raises SecretError when it cannot be one, FileNotFoundError when there is none."""
    if path.is_fifo():
        raise SecretError(f"the secret {path} cannot be read: it is a pipe", hint="it must be a file that you may read")
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_SECRET + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SecretError(f"the secret {path} cannot be read: {error.strerror}", hint="it must be a file that you may read") from error
    if not SECRET_BYTES <= len(content) <= LARGEST_SECRET:
        size = f"more than {LARGEST_SECRET}" if len(content) > LARGEST_SECRET else len(content)
        raise SecretError(
            f"{path} is no whole secret: it has {size} bytes; {SECRET_BYTES} to {LARGEST_SECRET} are allowed",
            hint="put back the copy that you kept; only where there is none, move the file away, and a new secret is made",
        )
    return content


def obtain_secret(path: Path, *, elsewhere: str) -> bytes:
    """Return the secret in a file, which is made where there is none; of several processes that make it at once all get the same.

    Raises SecretError when the file cannot be read or made; `elsewhere` says how another place for it is named.
    """
    try:
        return read_secret(path)
    except FileNotFoundError:
        pass
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_once(path, secrets.token_bytes(SECRET_BYTES))
    except FileExistsError:
        pass  # another process was faster
    except OSError as error:
        raise SecretError(f"the secret {path} cannot be made: {error.strerror}", hint=f"make its folder writable, or {elsewhere}") from error
    return read_secret(path)


def _name(partial: Path, path: Path) -> None:
    """Give a finished file its name; unlike a renaming, a link fails where the name is taken."""
    try:
        os.link(partial, path)
    except OSError as error:
        if error.errno not in _WITHOUT_LINKS:
            raise
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        partial.replace(path)  # a file system without links, such as that of a memory stick
