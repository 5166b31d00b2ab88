"""Finding and opening libattntune.so, and its one context of this process."""

import ctypes
import ctypes.util
import functools
import os
import pathlib
import threading

from ._types import Device


class Failure(RuntimeError):
    """A call into libattntune failed; `status` is its code, "ATTN_ERR_NO_KERNEL" and the like."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


def _candidates():
    if os.environ.get("ATTNTUNE_LIB"):
        yield os.environ["ATTNTUNE_LIB"]
        return
    here = pathlib.Path(__file__).resolve()
    yield str(here.with_name("libattntune.so"))
    yield str(here.parents[3] / "build" / "release" / "lib" / "libattntune.so")
    found = ctypes.util.find_library("attntune")
    if found:
        yield found


@functools.cache
def library():
    """The opened library, its functions given their types."""
    tried = list(_candidates())
    for name in tried:
        try:
            lib = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        raise ImportError("libattntune.so was not found; build it, or set ATTNTUNE_LIB to its "
                          "path. Tried: " + ", ".join(tried))
    lib.attn_version.restype = ctypes.c_char_p
    lib.attn_status_name.restype = ctypes.c_char_p
    lib.attn_last_error.restype = ctypes.c_char_p
    lib.attn_last_error.argtypes = [ctypes.c_void_p]
    lib.attn_open.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    lib.attn_workspace_size.restype = ctypes.c_size_t
    lib.attn_workspace_size.argtypes = [ctypes.c_void_p, ctypes.c_void_p, Device]
    lib.attn_choice_get.argtypes = [ctypes.c_void_p, ctypes.c_void_p, Device, ctypes.c_void_p]
    lib.attn_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, Device, ctypes.c_void_p,
                             ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    return lib


_lock = threading.Lock()
_context = None


def context():
    """The process's context, opened at first use and kept until the process ends."""
    global _context
    with _lock:
        if _context is None:
            opened = ctypes.c_void_p()
            check(None, library().attn_open(None, ctypes.byref(opened)))
            _context = opened
    return _context


def check(ctx, status):
    """Raises Failure unless status is ATTN_OK."""
    if status:
        lib = library()
        raise Failure(lib.attn_status_name(status).decode(),
                      lib.attn_last_error(ctx).decode(errors="replace"))
