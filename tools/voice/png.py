# SPDX-License-Identifier: Apache-2.0
"""PNG pictures of spectrograms and curves without a plotting library."""
import struct
import zlib

import numpy as np

WHITE, GREY = (255, 255, 255), (215, 215, 215)
COLOURS = ((31, 90, 160), (200, 80, 30), (40, 130, 60), (130, 60, 150), (120, 100, 20), (90, 90, 90))
# Digits and signs as rows of a 3 x 5 raster, for the axes.
RASTER = {"0": "75557", "1": "26227", "2": "71747", "3": "71717", "4": "55711", "5": "74717", "6": "74757", "7": "71111", "8": "75757", "9": "75717", ".": "00002", "-": "00700", " ": "00000"}


def write(path, image):
    """image: uint8 [height, width, 3]"""
    image = np.ascontiguousarray(image, np.uint8)
    height, width = image.shape[:2]
    raw = b"".join(b"\0" + image[y].tobytes() for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(raw, 6)) + chunk(b"IEND", b""))


def spectrogram(mel, low=-9.0, high=3.0, scale=3):
    """log mel [100, T] -> picture, low bands at the bottom"""
    x = np.clip((np.asarray(mel) - low) / (high - low), 0, 1)[::-1]
    rgb = np.stack([np.clip(1.5 * x, 0, 1), np.clip(2.2 * x - 0.9, 0, 1), np.clip(0.5 + 0.5 * np.sin(x * 2 * np.pi), 0, 1) * (1 - 0.6 * x)], -1)
    return np.repeat(np.repeat((rgb * 255).astype(np.uint8), scale, 0), scale, 1)


def stacked(images, gap=6):
    """Pictures below each other, padded to one width."""
    width = max(i.shape[1] for i in images)
    return np.concatenate([np.pad(i, ((0, gap), (0, width - i.shape[1]), (0, 0))) for i in images])


def text(image, x, y, label, colour=(60, 60, 60), size=2):
    for c in label:
        for row, bits in enumerate(RASTER.get(c, "00000")):
            for column in range(3):
                if int(bits) >> (2 - column) & 1:
                    image[y + row * size:y + (row + 1) * size, x + column * size:x + (column + 1) * size] = colour
        x += 4 * size


def curves(series, width=900, height=360):
    """series: [(xs, ys)] with one colour each; the axes carry the least and greatest values."""
    image = np.full((height, width, 3), 255, np.uint8)
    series = [(np.asarray(x, float), np.asarray(y, float)) for x, y in series if len(x) > 1]
    if not series:
        return image
    left, right, top, bottom = 80, width - 20, 15, height - 35
    x0, x1 = min(x.min() for x, _ in series), max(x.max() for x, _ in series)
    y0, y1 = min(y.min() for _, y in series), max(np.quantile(y, 0.98) for _, y in series)
    x1, y1 = max(x1, x0 + 1e-9), max(y1, y0 + 1e-9)
    for k in range(5):
        level = top + (bottom - top) * k // 4
        image[level, left:right] = GREY
        text(image, 4, level - 5, f"{y1 + (y0 - y1) * k / 4:.4g}"[:8])
        text(image, left + (right - left - 60) * k // 4, bottom + 12, f"{x0 + (x1 - x0) * k / 4:.4g}"[:8])
    for number, (xs, ys) in enumerate(series):
        at = np.arange(left, right)
        y = np.interp(x0 + (at - left) / (right - left) * (x1 - x0), xs, ys, left=np.nan, right=np.nan)
        rows = np.clip(bottom - (y - y0) / (y1 - y0) * (bottom - top), top, bottom)
        for column in range(1, len(at)):
            if np.isfinite(rows[column]) and np.isfinite(rows[column - 1]):
                a, b = sorted((int(rows[column - 1]), int(rows[column])))
                image[a:b + 2, at[column]] = COLOURS[number % len(COLOURS)]
    return image
