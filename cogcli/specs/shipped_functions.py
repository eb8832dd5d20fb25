"""The shipped functions that anybody's binding may call (docs/reference/service.md#trust)."""

from __future__ import annotations

from typing import Final

_PACKAGE: Final = "cogcli.official."
UNGUARDED: Final = frozenset(
    f"{_PACKAGE}{line.split()[0]}:{function}"
    for line in """
        actions extract_actions
        agent find_options generate_plan route_input
        analysis extract_risks split_problem
        audio check_file
        budget estimate_budget
        chunks cut_text
        classify classify_by_cues
        code analyze_source extract_diff format_source
        data check_json merge_objects parse_json profile_records
        decision justify_option
        document check_path read_text
        email read_mailbox
        extract find_entities
        fetch fetch_page
        fs list_files read_file
        git read_log
        guards check_constraint gate_output
        image check_file
        licences detect_licence
        logs parse_log
        markup extract_body
        memory retrieve_entry search_vectors store_entry
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
        research retrieve_sources
        schema validate
        search search
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
"""`module:function` of every function that a shipped binding calls for a capability that nobody has to confirm and that
standard trust is enough for, but for those that start a program which their arguments name. A layer that is not trusted
calls no other: a capability of its own would ask for neither."""
