"""Fields that the body of a batch request may have, by API path.

Sources: the request types of OpenAI's Python client, with which a test compares them, and the sampling and
extra parameters of `vllm/entrypoints/openai/chat_completion/protocol.py` in vLLM (read 2026-11). Those of
images are in `vllm_omni/entrypoints/openai/protocol/images.py` of vllm-omni 0.30.0.

Left out on purpose: fields that choose what an engine does for others (``priority``, ``request_id``,
``cache_salt``, ``kv_transfer_params``), that run or load something (``chat_template``, ``logits_processors``,
``mm_processor_kwargs``, ``media_io_kwargs``), and those of OpenAI's own services (``store``,
``service_tier``, ``web_search_options``, ``audio``, ``modalities``, ``moderation``, ``prediction``,
``prompt_cache_options``, ``prompt_cache_retention``). Of images: fields that vllm-omni does not read
(``background``, ``complexity``, ``frame_count``, ``frame_duration_ms``, ``partial_images``, ``quality``,
``style``, ``svg``), that choose files or devices of the server (``lora``, ``extra_params``,
``generator_device``, ``vae_use_slicing``, ``vae_use_tiling``), and that return more than images (``layers``,
``return_stage_metrics``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: API path of requests whose answers are images.
IMAGES_PATH: Final = "/v1/images/generations"

_SAMPLING: Final = frozenset(
    {
        *(
            "frequency_penalty",
            "logit_bias",
            "logprobs",
            "max_tokens",
            "n",
            "presence_penalty",
            "seed",
            "stop",
        ),
        *("stream", "stream_options", "temperature", "top_p", "user"),
        # Of engines.
        *("add_special_tokens", "allowed_token_ids", "bad_words", "echo", "ignore_eos", "length_penalty"),
        *("include_stop_str_in_output", "min_p", "min_tokens", "prompt_logprobs", "repetition_penalty"),
        *("return_token_ids", "skip_special_tokens", "spaces_between_special_tokens", "stop_token_ids"),
        *("structured_outputs", "top_k", "truncate_prompt_tokens", "use_beam_search"),
    }
)

#: Fields of a body, by API path.
BODY_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "/v1/chat/completions": _SAMPLING
    | {
        *("messages", "model", "function_call", "functions", "max_completion_tokens", "metadata"),
        *("parallel_tool_calls", "prompt_cache_key", "reasoning_effort", "response_format"),
        *("safety_identifier", "tool_choice", "tools", "top_logprobs", "verbosity"),
        # Of engines.
        *("add_generation_prompt", "chat_template_kwargs", "continue_final_message", "documents"),
    },
    "/v1/completions": _SAMPLING | {"best_of", "model", "prompt", "response_format", "suffix"},
    "/v1/embeddings": frozenset(
        {"add_special_tokens", "dimensions", "encoding_format", "input", "model", "truncate_prompt_tokens"}
        | {"user"}
    ),
    IMAGES_PATH: frozenset(
        {
            *("model", "n", "output_compression", "output_format", "prompt", "response_format"),
            *("safety_identifier", "size", "user"),
            # Of the engine.
            *("bot_task", "flow_shift", "guidance_scale", "negative_prompt", "num_inference_steps", "seed"),
            *("system_prompt", "true_cfg_scale", "use_system_prompt"),
        }
    ),
}

#: Types of the parts of a message. Engines would fetch videos and audio from anywhere.
PART_TYPES: Final = ("image_url", "refusal", "text")
