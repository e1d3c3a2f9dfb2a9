"""Record models from their published ``config.json`` in the catalogue's ``models.json``.

Refresh every entry that comes from the bundle, or add or replace one model from a file:

    .venv/bin/python scripts/record_models.py
    .venv/bin/python scripts/record_models.py NAME --config FILE --source URL --licence SPDX \
        [--answer-format FORMAT] [--gated]

The bundle is the set of configurations in the ``aiconfigurator-core`` wheel, which is read without
downloading
it. Values that are not in a configuration (answer_format, licence, gated) stay unchanged in ``models.json``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from parameter_count import count_parameters, count_vision_parameters
from remote_wheel import open_remote_wheel

TARGET = Path(__file__).resolve().parents[1] / "inference_blueprints/catalog/data/models.json"
BUNDLED = re.compile(r"(aiconfigurator-core) (\S+): (model_configs/\S+\.json)(?:, as (fp8))?")
LIST = re.compile(r"\[([^]\[]*)\]")
BYTES_IN_QUANTISED_LAYERS = {"bf16": 2, "fp8": 1 + 4 / 128**2, "mxfp4": 4.25 / 8}
"""Bytes include scales: FP8 has a 4-byte scale per 128 by 128 weights, MXFP4 one byte per 32 weights."""

SPLIT_BY_IMAGE = ("Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration")
"""Architectures whose devices encode whole images: ``qwen3_vl.py`` of vLLM 0.31.0 and SGLang 0.5.21."""


def describe(configuration: dict[str, Any], weight_type: str | None = None) -> dict[str, Any]:
    """Turn a ``config.json`` into the numbers of a catalogue entry."""
    text = configuration.get("text_config", configuration)
    quantisation = configuration.get("quantization_config", {}).get("quant_method", "bf16")
    weight_type = weight_type or quantisation
    if weight_type not in BYTES_IN_QUANTISED_LAYERS:
        known = ", ".join(BYTES_IN_QUANTISED_LAYERS)
        sys.exit(f"got quantisation '{weight_type}', supported are {known}; write the entry by hand")
    latent = text["kv_lora_rank"] + text["qk_rope_head_dim"] if "kv_lora_rank" in text else 0
    count = count_parameters(configuration)
    quantised = count.experts if weight_type == "mxfp4" else count.linear
    weight_bytes = quantised * BYTES_IN_QUANTISED_LAYERS[weight_type] + (count.total - quantised) * 2
    return {
        "architecture": configuration["architectures"][0],
        "parameters_billion": round(count.total / 1e9, 2),
        "active_parameters_billion": round(count.active / 1e9, 2),
        "layers": text["num_hidden_layers"],
        "hidden_size": text["hidden_size"],
        "vocabulary_size": text["vocab_size"],
        "attention_heads": text["num_attention_heads"],
        "kv_heads": text["num_key_value_heads"],
        "head_size": text.get("v_head_dim")
        or text.get("head_dim")
        or text["hidden_size"] // text["num_attention_heads"],
        "attention": "mla" if latent else "gqa",
        "kv_latent_size": latent,
        "experts": text.get("n_routed_experts")
        or text.get("num_experts")
        or text.get("num_local_experts")
        or 0,
        "feed_forward_size": text.get("moe_intermediate_size") or text["intermediate_size"],
        "weight_type": weight_type,
        "weight_bytes": round(weight_bytes),
        "expert_weight_bytes": round(count.experts * BYTES_IN_QUANTISED_LAYERS[weight_type]),
        "context_length": text["max_position_embeddings"],
        "vision": _vision(configuration),
    }


def _vision(configuration: dict[str, Any]) -> dict[str, Any] | None:
    """Describe the vision part, which publishers leave in BF16. None without one."""
    vision = configuration.get("vision_config")
    if vision is None:
        return None
    hidden_size = configuration["text_config"]["hidden_size"]
    fixed = configuration.get("mm_tokens_per_image", 0)
    patches = (vision["image_size"] // vision["patch_size"]) ** 2 if fixed else 0
    merged = patches // fixed if fixed else vision["spatial_merge_size"] ** 2
    return {
        "weight_bytes": 2 * count_vision_parameters(configuration),
        "hidden_size": vision["hidden_size"],
        "patch_pixels": vision["patch_size"] ** 2,
        "patches_per_token": merged,
        "tokens_per_image": fixed,
        "embedding_size": hidden_size * (1 + len(vision.get("deepstack_visual_indexes", []))),
        "splits_by_image": configuration["architectures"][0] in SPLIT_BY_IMAGE,
    }


def refresh(models: dict[str, dict[str, Any]]) -> None:
    """Read every bundled configuration again."""
    wheels = {}
    for name, entry in models.items():
        match = BUNDLED.match(entry["source"])
        if not match:
            continue
        package, version, path, weight_type = match.groups()
        if version not in wheels:
            wheels[version] = open_remote_wheel(f"{package}=={version}")
        configuration = json.loads(wheels[version].read(f"aiconfigurator_core/{path}"))
        models[name] = describe(configuration, weight_type) | {
            key: entry[key] for key in ("answer_format", "gated", "licence", "source")
        }


def main() -> None:
    """Refresh the bundled models, or record the given one."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument(
        "name", nargs="?", help="Hugging Face id; without it every bundled model is refreshed"
    )
    options.add_argument("--config", type=Path, help="its config.json")
    options.add_argument("--source", help="URL of that file")
    options.add_argument("--licence", help="SPDX identifier, or the publisher's name of the licence")
    options.add_argument("--answer-format", help="an entry of answer_formats.json")
    options.add_argument("--gated", action="store_true", help="Hugging Face requires an accepted licence")
    given = options.parse_args()
    document = json.loads(TARGET.read_text(encoding="utf-8"))
    if given.name is None:
        refresh(document["models"])
    elif given.config is None or given.source is None or given.licence is None:
        options.error("a model needs --config, --source and --licence")
    else:
        configuration = json.loads(given.config.read_text(encoding="utf-8"))
        facts = {
            "answer_format": given.answer_format,
            "gated": given.gated,
            "licence": given.licence,
            "source": given.source,
        }
        document["models"][given.name] = describe(configuration) | facts
    document["models"] = dict(sorted(document["models"].items()))
    text = json.dumps(document, indent=2, ensure_ascii=False)
    text = LIST.sub(lambda found: f"[{' '.join(found.group(1).split())}]", text)
    TARGET.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
