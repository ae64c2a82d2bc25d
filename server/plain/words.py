"""Words of torch's and our own enumerations: value → key of the message files."""

from __future__ import annotations

from compiler.events import StageName

STAGES = {
    StageName.SOURCE: "plain.stage_source",
    StageName.DYNAMO: "plain.stage_dynamo",
    StageName.PRE_GRAD: "plain.stage_pre_grad",
    StageName.JOINT: "plain.stage_joint",
    StageName.JOINT_PASSES: "plain.stage_joint_passes",
    StageName.PARTITION: "plain.stage_partition",
    StageName.POST_GRAD: "plain.stage_post_grad",
    StageName.SCHEDULE: "plain.stage_schedule",
    StageName.FUSION: "plain.stage_fusion",
    StageName.CODEGEN: "plain.stage_codegen",
    StageName.MEMORY: "plain.stage_memory",
    StageName.EXECUTE: "plain.stage_execute",
    StageName.CACHE: "plain.stage_cache",
}

STATES = {
    "ok": ("✓", "plain.state_ok"),
    "changed": ("✓", "plain.state_changed"),
    "unchanged": ("=", "plain.state_unchanged"),
    "failed": ("✕", "plain.state_failed"),
    "skipped": ("–", "plain.state_skipped"),
    "running": ("◔", "plain.state_running"),
    "waiting": ("○", "plain.state_waiting"),
    "absent": ("○", "plain.state_absent"),
}

WORDS = {
    "severity": {
        "error": "plain.severity_error",
        "warning": "plain.severity_warning",
        "note": "plain.severity_note",
    },
    "mode": {"training": "plain.mode_training", "inference": "plain.mode_inference"},
    "form": {"declared": "plain.form_declared", "script": "plain.form_script"},
    "break": {
        "break": "plain.break_break",
        "rest_of_function": "plain.break_rest_of_function",
        "whole_function": "plain.break_whole_function",
        "recompile_limit": "plain.break_recompile_limit",
        "backend_failure": "plain.break_backend_failure",
        "skipped": "plain.break_skipped",
    },
    "verdict": {
        "saved": "plain.verdict_saved",
        "recomputed": "plain.verdict_recomputed",
        "forward_only": "plain.verdict_forward_only",
        "input": "plain.verdict_input",
        "backward_only": "plain.verdict_backward_only",
    },
    "node": {
        "pointwise": "plain.node_kind_pointwise",
        "reduction": "plain.node_kind_reduction",
        "extern": "plain.node_kind_extern",
        "nop": "plain.node_kind_nop",
        "template": "plain.node_kind_template",
        "foreach": "plain.node_kind_foreach",
        "grouped": "plain.node_kind_grouped",
        "other": "plain.node_kind_other",
    },
    "kernel": {"cpp": "plain.kernel_cpp", "extern": "plain.kernel_extern", "triton": "plain.kernel_triton"},
    "series": {
        "dry_run": "plain.series_dry_run",
        "plan": "plain.series_plan",
        "eager": "plain.series_eager",
        "compiled": "plain.series_compiled",
    },
    "block": {
        "saved": "plain.block_saved",
        "temporary": "plain.block_temporary",
        "output": "plain.block_output",
        "workspace": "plain.block_workspace",
        "gradient": "plain.block_gradient",
    },
    "compare": {
        "output": "plain.compare_output",
        "gradient": "plain.compare_gradient",
        "buffer": "plain.compare_buffer",
        "printed": "plain.compare_printed",
    },
    "cache": {
        "cold": "plain.cold",
        "warm": "plain.warm",
        "hit": "plain.hit",
        "miss": "plain.miss",
        "bypass": "plain.bypass",
        "unused": "plain.unused",
    },
}
