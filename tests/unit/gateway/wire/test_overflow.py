"""Real wordings of a prompt that is too long, and real ones of something else."""

import json

import pytest

from gateway.wire.chat.shape import rewritten_error
from gateway.wire.overflow import CODE, PHRASE, STATUS, is_overflow, may_be_overflow


def rewritten(status: int, body: bytes) -> bytes | None:
    """Return what a chat client is told in place of an upstream's error."""
    return rewritten_error(body, status == STATUS) if may_be_overflow(status) else None


OVERFLOWS = {
    "openai": "This model's maximum context length is 4097 tokens. However, your messages "
    "resulted in 5012 tokens. Please reduce the length of the messages.",
    "openai-window": "Your input exceeds the context window of this model. Please adjust your "
    "input and try again.",
    "openai-limit": "Input tokens exceed the configured limit of 272000 tokens. Your messages "
    "resulted in 300121 tokens.",
    "vllm": "This model's maximum context length is 2048 tokens. However, you requested 3018 "
    "tokens (2818 in the messages, 200 in the completion).",
    "vllm-decoder": "The decoder prompt (length 5000) is longer than the maximum model length of "
    "4096. Make sure that `max_model_len` is no smaller than the number of text tokens.",
    "vllm-input": "Input length (5000) exceeds model's maximum context length (4096).",
    "vllm-0.8": "This model's maximum context length is 262144 tokens. However, you requested 0 "
    "output tokens and your prompt contains at least 262145 input tokens",
    "llama.cpp": "request (66202 tokens) exceeds the available context size (65536 tokens), try "
    "increasing it",
    "llama.cpp-old": "the request exceeds the available context size. try increasing the context "
    "size or enable context shift",
    "llama.cpp-kv": "Context size has been exceeded.",
    "ollama": "the input length exceeds the context length",
    "ollama-cloud": "prompt too long; exceeded max context length by 12 tokens",
    "tgi": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: "
    "5000 `inputs` tokens and 20 `max_new_tokens`",
    "tgi-old": "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000",
    "litellm": "litellm.ContextWindowExceededError: litellm.BadRequestError: AnthropicError - "
    "prompt is too long",
    "lm-studio": "Trying to keep the first 15857 tokens when context the overflows. However, the "
    "model is loaded with context length of only 4096 tokens, which is not enough.",
    "lm-studio-keep": "The number of tokens to keep from the initial prompt is greater than the "
    "context length.",
    "anthropic": "prompt is too long: 208310 tokens > 200000 maximum",
    "anthropic-sum": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, "
    "decrease input length or `max_tokens` and try again",
    "gemini": "The input token count (1196265) exceeds the maximum number of tokens allowed "
    "(1048575).",
    "mistral": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 "
    "maximum context length",
    "cohere": "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    "groq": "Please reduce the length of the messages or completion.",
    "fireworks": "The prompt is too long: 140000, model maximum context length: 131071",
    "bedrock": "Input is too long for requested model.",
    "bedrock-count": "Too many input tokens. Max input tokens: 8192, request input token "
    "count: 9000",
    "xai": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "sglang": "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    "sglang-total": "Requested token count exceeds the model's maximum context length of 4096 "
    "tokens.",
    "openrouter": "This endpoint's maximum context length is 128000 tokens. However, you requested "
    "about 150000 tokens",
    "tensorrt": "Prompt length (5000) exceeds maximum input length (4096).",
    "cerebras": "Please reduce the length of the messages or completion. Current length is 9000 "
    "while limit is 8192",
    "kimi": "Invalid request: Your request exceeded model token limit: 131072",
    "glm": "Prompt exceeds max length",
    "qwen": "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
    "minimax": "invalid params, context window exceeds limit (2013)",
    "copilot": "prompt token count of 70000 exceeds the limit of 64000",
    "tabby": "Prompt length 5000 is greater than max_seq_len 4096",
    "watsonx": "the number of input tokens 9000 cannot exceed the total tokens limit 8192 for this "
    "model",
    "cloudflare": "The estimated number of input and maximum output tokens (9000) exceeded this "
    "model context window limit (8192).",
}
OTHERS = (
    "Request too large for model `llama` on tokens per minute (TPM): Limit 6000, Requested 8000, "
    "please reduce your message size and try again.",
    "Rate limit reached for gpt-4 in organization on tokens per min. Limit: 10000",
    "You exceeded your current quota, please check your plan and billing details.",
    "max_tokens is too large: 5000. This model supports at most 4096 completion tokens.",
    "Incorrect API key provided",
    "Unsupported value: 'temperature' does not support 0.2",
    "Invalid 'messages[0].name': string too long. Expected a string with maximum length 64",
    "The server had an error processing your request",
    "model 'x' not found",
    "tool_call_ids did not have response messages: call_1",
)


@pytest.mark.parametrize("wording", OVERFLOWS.values(), ids=OVERFLOWS.keys())
def test_an_overflow_however_it_is_worded_is_said_as_openai_says_it(wording: str) -> None:
    """CASES B5 (litellm#28063, ik_llama.cpp PR#2051)."""
    for body in (
        {"error": {"message": wording, "type": "BadRequestError", "code": 400}},
        {"object": "error", "message": wording, "code": 400},
        {"error": wording, "error_type": "validation"},
        [{"error": {"code": 400, "message": wording, "status": "INVALID_ARGUMENT"}}],
    ):
        changed = rewritten(400, json.dumps(body).encode())
        assert changed is not None
        error = json.loads(changed)["error"]
        assert error["code"] == CODE
        assert error["type"] == "invalid_request_error"
        assert PHRASE in error["message"]
        assert wording in error["message"]


@pytest.mark.parametrize("wording", OTHERS)
def test_what_is_no_overflow_is_left_alone(wording: str) -> None:
    assert not is_overflow(wording)
    assert rewritten(400, json.dumps({"error": {"message": wording}}).encode()) is None


def test_a_rate_limit_is_never_taken_for_an_overflow() -> None:
    body = json.dumps({"error": {"message": OVERFLOWS["openai"]}}).encode()
    assert rewritten(429, body) is None


def test_what_openai_itself_says_stays_byte_for_byte() -> None:
    error = {"message": OVERFLOWS["openai"], "type": "invalid_request_error", "code": CODE}
    assert rewritten(400, json.dumps({"error": error}).encode()) is None


def test_the_upstreams_own_numbers_are_kept() -> None:
    error = {
        "code": 400,
        "message": OVERFLOWS["llama.cpp"],
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 66202,
        "n_ctx": 65536,
    }
    changed = rewritten(400, json.dumps({"error": error}).encode())
    assert changed is not None
    assert json.loads(changed)["error"]["n_ctx"] == 65536


def test_the_type_alone_is_enough() -> None:
    error = {"message": "no", "type": "exceed_context_size_error"}
    assert rewritten(400, json.dumps({"error": error}).encode()) is not None


def test_plain_text_is_understood_and_a_wrong_status_mended() -> None:
    assert rewritten(500, b"the input length exceeds the context length\n") is not None
    assert rewritten(200, b"prompt is too long") is None
    assert rewritten(502, b"<html>Bad Gateway</html>") is None
    assert rewritten(400, b"\xff\xfe") is None
