"""Builds the wheel and the source archive, as PEP 517 asks of a build backend. It uses CMake and the standard library only.

A wheel has everything in the folder of the package: the module, the command (bin), the C library (lib), the headers with which the
command compiles C++ (include), and the plans (share/chorale/plans). The libraries of the system that these link, such as
Boost.Context, are copied to lib. CUDA kernels are left out.

Settings of a front end (pip install --config-settings):
    build-dir=FOLDER  a build folder that is configured and built already; default: build/wheel, which this builds
    jobs=N            compilers at a time; default: one per core
"""
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGETS = "chorale", "chorale_c", "chorale_python_package"
OPTIONS = ("-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG", "-DCHORALE_TESTS=OFF", "-DCHORALE_BENCH=OFF", "-DCHORALE_CUDA=OFF", "-DCHORALE_UNITY=ON",
           "-DCHORALE_PRECOMPILED=ON", "-DCHORALE_WHEEL=ON")
# Every Linux has these, and another version than that of its loader would not work.
OF_THE_SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+))\.so(\.\d+)*")
SUMMARY = "GPU collectives that are checked before they run"


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []


def _version():
    return re.search(r"^project\(chorale VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1)


def _metadata():
    return (f"Metadata-Version: 2.1\nName: chorale\nVersion: {_version()}\nSummary: {SUMMARY}\nLicense: MIT\n"
            "Requires-Python: >=3.9\nRequires-Dist: numpy\nDescription-Content-Type: text/markdown\n\n"
            + (ROOT / "README.md").read_text(encoding="utf-8"))


def _run(*command):
    try:
        subprocess.run([str(word) for word in command], check=True)
    except FileNotFoundError:
        sys.exit(f"error: there is no {command[0]}, which builds Chorale\nhelp: apt-get install cmake ninja-build g++")
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: {command[0]} ended with {error.returncode}\nhelp: its output above says why; README.md lists the packages "
                 "that a build needs, and the Python package also needs pybind11-dev, python3-dev and python3-numpy")


def _built(settings):
    """Returns a build folder that has the targets."""
    jobs = str(settings.get("jobs", os.cpu_count() or 1))
    if "build-dir" in settings:
        folder = pathlib.Path(settings["build-dir"]).resolve()
        if not (folder / "CMakeCache.txt").exists():
            sys.exit(f"error: build-dir={folder} is no build folder of CMake\nhelp: leave it out, and build/wheel is built")
    else:
        folder = ROOT / "build" / "wheel"
        generator = ("-G", "Ninja") if shutil.which("ninja") else ()
        _run("cmake", "-S", ROOT, "-B", folder, *generator, *OPTIONS, f"-DPython3_EXECUTABLE={sys.executable}",
             f"-DCHORALE_PYTHON={sys.executable}", *_pybind11())
    _run("cmake", "--build", folder, "--target", *TARGETS, "--parallel", jobs)
    return folder


def _pybind11():
    """Returns where CMake finds pybind11, if this Python has it as a package."""
    try:
        import pybind11
        return (f"-Dpybind11_DIR={pybind11.get_cmake_dir()}",)
    except (ImportError, AttributeError):
        return ()


def _libraries(file):
    """Returns the system's libraries that a file links, by name."""
    text = subprocess.run(["ldd", str(file)], check=True, text=True, capture_output=True).stdout
    found = dict(re.findall(r"^\s*(\S+) => (/\S+)", text, re.M))
    return {name: path for name, path in found.items() if not OF_THE_SYSTEM.fullmatch(name)}


def _collect(build, package):
    """Copies what the wheel has to the folder of the package."""
    shutil.copytree(build / "python" / "chorale", package, ignore=shutil.ignore_patterns("__pycache__", "_build.py"))
    for folder in "bin", "lib":
        (package / folder).mkdir()
    shutil.copy2(build / "tools" / "chorale", package / "bin" / "chorale")
    (library,) = (build / "bindings" / "c").glob("libchorale.so.*[0-9].*.*.*")
    soname = ".".join(library.name.split(".")[:3])
    shutil.copy2(library, package / "lib" / soname)
    binaries = [*package.glob("_chorale*.so"), package / "bin" / "chorale", package / "lib" / soname]
    for binary in binaries:
        _run("strip", "--strip-unneeded", binary)
    for binary in binaries:
        for name, path in _libraries(binary).items():
            if not (package / "lib" / name).exists():
                shutil.copy2(os.path.realpath(path), package / "lib" / name)
    for folder in "compiler", "dsl":
        shutil.copytree(ROOT / folder / "include", package / "include", dirs_exist_ok=True)
    shutil.copytree(ROOT / "bindings" / "c" / "include", package / "include", dirs_exist_ok=True)
    for folder in "shipped", "tuned", "machines":
        shutil.copytree(ROOT / "plans" / folder, package / "share" / "chorale" / "plans" / folder)


def _hash(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _pack(tree, wheel, info):
    """Writes the wheel: the files of a tree, in order, with their hashes."""
    record = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same files make the same wheel
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
        for file in sorted(path for path in tree.rglob("*") if path.is_file()):
            name, data = file.relative_to(tree).as_posix(), file.read_bytes()
            add(name, data, 0o755 if os.access(file, os.X_OK) else 0o644)
            record.append(f"{name},{_hash(data)},{len(data)}\n")
        record.append(f"{info}/RECORD,,\n")
        add(f"{info}/RECORD", "".join(record).encode(), 0o644)


def _tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = pathlib.Path(metadata_directory) / f"chorale-{_version()}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(_metadata(), encoding="utf-8")
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: chorale\nRoot-Is-Purelib: false\nTag: {_tag()}\n")
    (info / "entry_points.txt").write_text("[console_scripts]\nchorale = chorale._command:main\n")
    shutil.copy2(ROOT / "LICENSE", info / "LICENSE")
    return info.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = _built(config_settings or {})
    name = f"chorale-{_version()}-{_tag()}.whl"
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        _collect(build, tree / "chorale")
        info = prepare_metadata_for_build_wheel(folder)
        _pack(tree, pathlib.Path(wheel_directory) / name, info)
    return name


def build_sdist(sdist_directory, config_settings=None):
    stem = f"chorale-{_version()}"
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"], capture_output=True)
    if listed.returncode == 0 and listed.stdout:
        files = [name for name in listed.stdout.decode().split("\0") if name]
    else:  # a source archive
        files = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")
                 if path.is_file() and path.relative_to(ROOT).parts[0] not in ("build", ".git") and "__pycache__" not in path.parts]
    with tempfile.NamedTemporaryFile("w", suffix="PKG-INFO", encoding="utf-8") as metadata, \
            tarfile.open(pathlib.Path(sdist_directory) / f"{stem}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            if (ROOT / name).exists():
                archive.add(ROOT / name, f"{stem}/{name}", recursive=False)
        metadata.write(_metadata())
        metadata.flush()
        archive.add(metadata.name, f"{stem}/PKG-INFO")
    return f"{stem}.tar.gz"
