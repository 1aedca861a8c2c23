# SPDX-License-Identifier: Apache-2.0
"""Importing a checkpoint: the small recorded model must pass, and each way of being broken must be reported without writing anything."""
import json
import os
import shutil
import tempfile
import unittest
from unittest import mock

import support
import import_chattts
from manifest_lib import sha256_of

MODEL = os.path.join(support.GOLDEN, "model")


class ImportTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.source, self.out = os.path.join(scratch.name, "in"), os.path.join(scratch.name, "out")
        shutil.copytree(os.path.join(MODEL, "asset"), os.path.join(self.source, "asset"))

    def path(self, role):
        return os.path.join(self.source, *import_chattts.FILES[role][0].split("/"))

    def run_import(self, *more, hashes=False):
        return support.run(import_chattts.main, self.source, "--out", self.out, *([] if hashes else ["--allow-unknown-hashes"]), *more)

    def manifest(self):
        with open(os.path.join(self.out, "manifest.json"), encoding="utf-8") as f:
            return json.load(f)

    def refused(self, *expected, **options):
        status, _, err = self.run_import(**options)
        self.assertEqual(status, 1)
        for text in expected:
            self.assertIn(text, err)
        self.assertFalse(os.path.exists(self.out), "a failed import must not leave a folder behind")
        return err

    def change_json(self, role, change):
        with open(self.path(role), encoding="utf-8") as f:
            value = json.load(f)
        change(value)
        with open(self.path(role), "w", encoding="utf-8") as f:
            json.dump(value, f)

    def change_header(self, role, change):
        header, data = support.split_safetensors(self.path(role))
        data = change(header, data) or data
        support.join_safetensors(self.path(role), header, data)

    # ------------------------------------------------------------------ good input
    def test_good_folder(self):
        status, out, err = self.run_import("--speaker-stat", os.path.join(MODEL, "config.json"), "--homophones", os.path.join(MODEL, "homophones_map.json"))
        self.assertEqual((status, err), (0, ""))
        m = self.manifest()
        with open(os.path.join(MODEL, "manifest.json"), encoding="utf-8") as f:
            committed = json.load(f)
        for key in ("architecture", "files", "voices", "sampling", "limits", "text", "speaker_precision"):
            self.assertEqual(m[key], committed[key], key)
        with open(os.path.join(MODEL, "config.json"), encoding="utf-8") as f:
            made_with = json.load(f)
        arch = m["architecture"]
        self.assertEqual(arch["decoder"], made_with["decoder"])
        self.assertEqual(arch["dvae"], made_with["dvae"])
        self.assertEqual(arch["vocos"]["dim"], made_with["vocos"]["backbone"]["init_args"]["dim"])
        for entry in m["files"].values():
            path = os.path.join(self.out, entry["path"])
            self.assertEqual((sha256_of(path), os.path.getsize(path)), (entry["sha256"], entry["bytes"]))

    def test_import_again_over_itself(self):
        self.assertEqual(self.run_import()[0], 0)
        self.assertEqual(self.run_import("--copy")[0], 0)
        self.assertEqual(sha256_of(self.path("gpt")), self.manifest()["files"]["gpt"]["sha256"])

    def test_in_place(self):
        status, _, _ = support.run(import_chattts.main, self.source, "--out", self.source, "--allow-unknown-hashes")
        self.assertEqual(status, 0)
        self.assertTrue(os.path.isfile(os.path.join(self.source, "manifest.json")))

    def test_link_and_copy(self):
        self.run_import()
        self.assertTrue(os.path.samefile(self.path("gpt"), os.path.join(self.out, "asset", "gpt", "model.safetensors")))
        shutil.rmtree(self.out)
        self.run_import("--copy")
        self.assertFalse(os.path.samefile(self.path("gpt"), os.path.join(self.out, "asset", "gpt", "model.safetensors")))

    def test_asset_folder_given_directly(self):
        status, _, _ = support.run(import_chattts.main, os.path.join(self.source, "asset"), "--out", self.out, "--allow-unknown-hashes")
        self.assertEqual(status, 0)

    def test_voices(self):
        with open(os.path.join(support.GOLDEN, "speaker.json"), encoding="utf-8") as f:
            speaker = json.load(f)["spk_emb_strings"]
        text = os.path.join(self.source, "voice.txt")
        with open(text, "w", encoding="utf-8") as f:
            f.write(speaker[0] if isinstance(speaker, list) else next(iter(speaker.values())))
        status, _, err = self.run_import("--speaker-string", f"anna={text}", "--speaker-stat", os.path.join(MODEL, "config.json"), "--voice", "bob=7")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual([(v["id"], v["speaker"]["kind"]) for v in self.manifest()["voices"]], [("anna", "string"), ("bob", "seed")])

    def test_fallback_voice(self):
        status, out, _ = self.run_import()
        self.assertEqual(status, 0)
        self.assertEqual([v["id"] for v in self.manifest()["voices"]], ["default"])
        self.assertIn("without --speaker-stat", out)

    def test_published_hashes_pass_without_the_flag(self):
        known = {role: (path, sha256_of(self.path(role))) for role, (path, _) in import_chattts.FILES.items()}
        with mock.patch.object(import_chattts, "FILES", known):
            self.assertEqual(self.run_import(hashes=True)[0], 0)
        self.assertEqual(self.manifest()["title"], "ChatTTS")

    def test_optional_embed_tokens(self):
        def add(header, data):
            header["embed_tokens.weight"] = {"dtype": "F32", "shape": [2, 64], "data_offsets": [len(data), len(data) + 512]}
            return data + b"\0" * 512
        self.change_header("gpt", add)
        self.assertEqual(self.run_import()[0], 0)

    # ------------------------------------------------------------------ broken input
    def test_wrong_hash(self):
        err = self.refused("SHA-256", "--allow-unknown-hashes", hashes=True)
        self.assertIn("9 problems", err)

    def test_every_missing_file_is_named(self):
        os.remove(self.path("vocos"))
        os.remove(self.path("tokenizer"))
        self.refused("asset/Vocos.safetensors: missing", "asset/tokenizer/tokenizer.json: missing", "2 problems")

    def test_missing_folder(self):
        shutil.rmtree(self.source)
        self.assertEqual(self.run_import()[0], 1)

    def test_truncated_file(self):
        with open(self.path("embed"), "r+b") as f:
            f.truncate(os.path.getsize(self.path("embed")) - 1000)
        self.refused("asset/Embed.safetensors", "truncated")

    def test_truncated_header(self):
        with open(self.path("decoder"), "r+b") as f:
            f.truncate(100)
        self.refused("asset/Decoder.safetensors", "truncated")

    def test_overlapping_offsets(self):
        def overlap(header, data):
            a, b = [k for k in header if header[k].get("shape") == [48]][:2]
            header[a]["data_offsets"] = header[b]["data_offsets"]
        self.change_header("decoder", overlap)
        self.refused("overlaps")

    def test_missing_and_unexpected_tensor(self):
        def rename(header, data):
            header["norm.weights"] = header.pop("norm.weight")
        self.change_header("gpt", rename)
        self.refused("tensor norm.weight is missing", "unexpected tensor norm.weights")

    def test_missing_layer_in_the_middle(self):
        def drop(header, data):
            for k in [k for k in header if k.startswith("layers.1.")]:
                header[k.replace("layers.1.", "layers.7.")] = header.pop(k)
        self.change_header("gpt", drop)
        self.refused("without gaps")

    def test_wrong_shape(self):
        def transpose(header, data):
            header["layers.0.mlp.down_proj.weight"]["shape"].reverse()
        self.change_header("gpt", transpose)
        self.refused("layers.0.mlp.down_proj.weight has shape [128, 64], expected [64, 128]")

    def test_wrong_type(self):
        def integers(header, data):
            header["norm.weight"]["dtype"] = "I32"
        self.change_header("gpt", integers)
        self.refused("norm.weight has type I32")

    def test_hostile_header(self):
        for header in (b"[" * 100000, b'{"__metadata__": 5}', b'{"x": {"dtype": "F32", "shape": [99999999999999999999], "data_offsets": [0, 1]}}', b"\x80\x04pickle", b"{}"):
            with self.subTest(header=header[:30]):
                support.join_safetensors(self.path("dvae"), header, b"")
                self.refused("asset/DVAE.safetensors")

    def test_config_that_contradicts_the_weights(self):
        self.change_json("gpt_config", lambda c: c.update(hidden_size=65, num_hidden_layers=4))
        self.refused("hidden sizes", "layer counts")

    def test_config_this_engine_cannot_run(self):
        self.change_json("gpt_config", lambda c: c.update(hidden_act="gelu", rope_scaling={"type": "linear"}, num_attention_heads=5, rms_norm_eps="x"))
        self.refused("hidden_act", "rope_scaling", "heads", "rms_norm_eps")

    def test_config_that_is_not_json(self):
        for text in ("", "[1]", "{", "[" * 100000):
            with self.subTest(text=text[:5]):
                with open(self.path("gpt_config"), "w", encoding="utf-8") as f:
                    f.write(text)
                self.refused("asset/gpt/config.json")

    def test_tokenizer_without_control_tokens(self):
        def drop(t):
            t["added_tokens"] = [x for x in t["added_tokens"] if x["content"] not in ("[spk_emb]", "[Ebreak]")]
        self.change_json("tokenizer", drop)
        self.refused("control tokens missing: [spk_emb] [Ebreak]")

    def test_tokenizer_larger_than_the_embedding(self):
        self.change_json("tokenizer", lambda t: t["added_tokens"].append({"id": 279, "content": "[extra]"}))
        self.refused("outside the embedding")

    def test_tokenizer_of_another_kind(self):
        self.change_json("tokenizer", lambda t: t.update(model={"type": "BPE", "vocab": {}}))
        self.refused("WordPiece")

    def test_bad_speaker_statistics_and_homophones(self):
        stat, table = os.path.join(self.source, "stat"), os.path.join(self.source, "table")
        with open(stat, "wb") as f:
            f.write(b"\0" * 100)
        with open(table, "w", encoding="utf-8") as f:
            f.write('{"ab": "c"}')
        status, _, err = self.run_import("--speaker-stat", stat, "--homophones", table)
        self.assertEqual(status, 1)
        self.assertIn("2 problems", err)

    def test_voice_without_statistics(self):
        status, _, err = self.run_import("--voice", "bob=7")
        self.assertEqual(status, 1)
        self.assertIn("need --speaker-stat", err)
        self.assertEqual(self.run_import("--voice", "../bob=7")[0], 2)


class SpeakerTextTest(unittest.TestCase):
    def test_recorded_pairs(self):
        with open(os.path.join(support.GOLDEN, "speaker.json"), encoding="utf-8") as f:
            pairs = json.load(f)["base16384"]
        self.assertTrue(pairs)
        for pair in pairs:
            raw, text = bytes.fromhex(pair["hex"]), pair["b16384"]
            self.assertEqual(import_chattts.base16384_encode(raw), text)
            self.assertEqual(import_chattts.base16384_decode(text), raw)

    def test_every_length(self):
        for n in range(40):
            raw = bytes((n * 37 + i * 101) & 255 for i in range(n))
            self.assertEqual(import_chattts.base16384_decode(import_chattts.base16384_encode(raw)), raw)

    def test_damaged_text(self):
        for text in ("a", "\u4e00", "\u4e00\u4e00", "\u4e00\u4e00\u4e00\u3d01", "\u3d02", "\u4e00\u3d06", "\u8e00"):
            with self.assertRaises(ValueError, msg=repr(text)):
                import_chattts.base16384_decode(text)


if __name__ == "__main__":
    unittest.main()
