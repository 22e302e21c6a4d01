"""Runs torch.distributed on Chorale's plans (docs/pytorch.md).

    import chorale.torch
    torch.distributed.init_process_group("chorale", ...)

These are the functions of chorale_torch, which an installation has in share/chorale/torch: load, make, run, use, chosen, empty. The
backend's C++ part is built once, on first use, against the C++ libraries of that installation. TORCH_CHORALE_PREFIX names the
installation; without it, this is the one that the package belongs to. A wheel has no C++ libraries.

Raises ImportError if there is no installation, or if PyTorch is missing or too old.
"""
import importlib.util
import os
import pathlib
import sys


def _file():
    named = os.environ.get("TORCH_CHORALE_PREFIX")
    package = pathlib.Path(__file__).resolve().parent
    prefixes = [pathlib.Path(named)] if named else [package, *package.parents[:5]]
    for prefix in prefixes:
        file = prefix / "share" / "chorale" / "torch" / "chorale_torch.py"
        if file.exists():
            return file
    where = f"TORCH_CHORALE_PREFIX={named}" if named else f"the folders above {package}"
    raise ImportError(f"chorale.torch needs Chorale's C++ libraries, and there is no installation of them in {where}: install them "
                      "with cmake --install BUILD --prefix FOLDER, and set TORCH_CHORALE_PREFIX=FOLDER")


def _load():
    if "chorale_torch" not in sys.modules:
        spec = importlib.util.spec_from_file_location("chorale_torch", _file())
        module = importlib.util.module_from_spec(spec)
        sys.modules["chorale_torch"] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules["chorale_torch"]
            raise
    return sys.modules["chorale_torch"]


_module = _load()
__all__ = ["chosen", "empty", "extension", "load", "make", "prefix", "run", "use"]
globals().update({_name: getattr(_module, _name) for _name in __all__})
