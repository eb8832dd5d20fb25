"""The shipped functions that a project may call before it is trusted (docs/reference/service.md#trust)."""

from __future__ import annotations

from typing import Final

_PACKAGE: Final = "cogcli.official."
OPEN_FUNCTIONS: Final = frozenset(
    f"{_PACKAGE}{line.split()[0]}:{function}"
    for line in """
        actions extract_actions
        agent find_options generate_plan route_input
        analysis extract_risks split_problem
        audio check_file
        budget estimate_budget
        chunks cut_text
        classify classify_by_cues
        code analyze_source extract_diff
        data check_json merge_objects parse_json profile_records
        decision justify_option
        document check_path read_text
        email read_mailbox
        extract find_entities
        fs list_files read_file
        git read_log
        guards check_constraint gate_output
        image check_file
        licences detect_licence
        logs parse_log
        markup extract_body
        model_output sanitize_output validate_response
        options analyze_options score_options
        pdf read_pdf
        personal_data detect_personal_data redact_personal_data
        planning create_plan
        prose check_summary extract_keywords extract_stemmed_keywords score_readability summarize_by_frequency
        prose summarize_by_lead
        provenance make_citation verify_claim
        quality score_output
        records deduplicate join_records merge_records transform_records
        report compose_sections
        schema validate
        secret_values detect_secrets
        sentiment rate_sentiment
        sheets read_sheet
        similarity compare_texts embed_by_hash
        synthesis synthesize_corpus
        table read_csv summarize_column total_groups
        table_rows aggregate_columns filter_rows sort_rows
        templates fill_prompt fill_template merge_items
        text detect_language normalize split_sections
        themes cluster_themes
        trace analyze_trace monitor_trace
        video extract_frames
        web extract_content
        web_sources normalize_results verify_source
        wording check_claims find_gaps rate_risks
    """.strip().splitlines()
    for function in line.split()[1:]
)
"""`module:function` of each shipped function that only computes, or reads files inside the project.

It has no effect, reaches no network and no store, and starts no program. Its capability requires no confirmation and no
more than standard trust.
"""
FETCH_PAGE: Final = f"{_PACKAGE}fetch:fetch_page"
"""Reaches the network. An untrusted project may call it only for the hosts of `--allow-host`."""
BEHIND_WALL: Final = frozenset({f"{_PACKAGE}snippet:execute"})
"""`module:function` of the shipped functions that require a wall (docs/reference/service.md#isolation)."""
