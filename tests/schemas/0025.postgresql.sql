CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE documents (
	id TEXT NOT NULL,
	uid UUID NOT NULL,
	source TEXT NOT NULL,
	kind TEXT NOT NULL,
	title TEXT NOT NULL,
	summary TEXT,
	unit TEXT,
	owner UUID,
	source_url TEXT NOT NULL,
	source_org TEXT NOT NULL,
	published_at TEXT,
	retrieved_at TIMESTAMP WITH TIME ZONE NOT NULL,
	raw_path TEXT NOT NULL,
	raw_sha256 TEXT NOT NULL,
	citation_string TEXT NOT NULL,
	body_raw_path TEXT,
	body_raw_format TEXT,
	body_raw_sha256 TEXT,
	body_text TEXT,
	body_text_sha256 TEXT,
	body_normalized_at TIMESTAMP WITH TIME ZONE,
	body_normalizer_version TEXT,
	body_map JSONB,
	content_sha256 TEXT NOT NULL,
	recipe TEXT NOT NULL,
	task_key TEXT,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	gone_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT pk_documents PRIMARY KEY (id),
	CONSTRAINT ck_documents_cited CHECK (citation_string <> ''),
	CONSTRAINT ck_documents_provenance CHECK (source_url <> '' AND source_org <> ''),
	CONSTRAINT ck_documents_body_raw_format CHECK (body_raw_format IS NULL OR body_raw_format IN ('html', 'xml', 'pdf', 'text')),
	CONSTRAINT uq_documents_uid UNIQUE (uid)
);

CREATE INDEX ix_documents_source_task_key ON documents (source, task_key);

CREATE INDEX ix_documents_unit ON documents (unit);

CREATE INDEX ix_documents_citation_string ON documents USING hash (citation_string);

CREATE INDEX ix_documents_body_normalizer_version ON documents (body_normalizer_version);

CREATE INDEX ix_documents_gone_at ON documents (gone_at) WHERE gone_at IS NOT NULL;

CREATE INDEX ix_documents_source_published_at ON documents (source, published_at);

COMMENT ON COLUMN documents.id IS 'Canonical id, e.g. fr:2026-08558.';

COMMENT ON COLUMN documents.uid IS 'UUIDv5 of id.';

COMMENT ON COLUMN documents.unit IS 'code_units.id, of a section of a code; else NULL.';

COMMENT ON COLUMN documents.owner IS 'User an upload belongs to; NULL is public.';

COMMENT ON COLUMN documents.source_url IS 'The page a person would open.';

COMMENT ON COLUMN documents.source_org IS 'The issuing body.';

COMMENT ON COLUMN documents.published_at IS 'ISO 8601.';

COMMENT ON COLUMN documents.raw_path IS 'Blob key of the file the record is from.';

COMMENT ON COLUMN documents.body_raw_path IS 'Blob key of the body''s raw bytes.';

COMMENT ON COLUMN documents.body_text IS 'Normalized Markdown.';

COMMENT ON COLUMN documents.body_normalizer_version IS 'name@semver';

COMMENT ON COLUMN documents.body_map IS 'Section labels and page marks by offset into body_text.';

COMMENT ON COLUMN documents.content_sha256 IS 'Over all a record says.';

COMMENT ON COLUMN documents.recipe IS 'Normalizer and chunker that derived the rest.';

COMMENT ON COLUMN documents.task_key IS 'The input this document was last loaded from.';

COMMENT ON COLUMN documents.gone_at IS 'When the publisher was seen to have withdrawn it.';

CREATE TABLE code_units (
	id TEXT NOT NULL,
	source TEXT NOT NULL,
	version TEXT NOT NULL,
	unit TEXT NOT NULL,
	label TEXT NOT NULL,
	published_at TEXT,
	plan_key TEXT NOT NULL,
	input_sha256 TEXT NOT NULL,
	nodes INTEGER NOT NULL,
	shards INTEGER NOT NULL,
	bytes BIGINT NOT NULL,
	state TEXT NOT NULL,
	is_newest BOOLEAN NOT NULL,
	planned_at TIMESTAMP WITH TIME ZONE NOT NULL,
	completed_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT pk_code_units PRIMARY KEY (id),
	CONSTRAINT ck_code_units_state CHECK (state IN ('planned', 'partial', 'complete'))
);

CREATE INDEX ix_code_units_source_unit ON code_units (source, unit, version);

COMMENT ON COLUMN code_units.id IS 'Its root node: usc/2024/root/title-42.';

COMMENT ON COLUMN code_units.version IS 'The edition: the publisher''s stamp.';

COMMENT ON COLUMN code_units.unit IS 'Its name in every edition: title-42.';

COMMENT ON COLUMN code_units.published_at IS 'ISO 8601; the day of the text.';

COMMENT ON COLUMN code_units.plan_key IS 'Blob key of the plan.';

COMMENT ON COLUMN code_units.input_sha256 IS 'Over the pages that were walked.';

COMMENT ON COLUMN code_units.shards IS 'Leaves among them.';

COMMENT ON COLUMN code_units.bytes IS 'Of the bodies, as far as planned.';

COMMENT ON COLUMN code_units.state IS 'planned, partial, complete';

COMMENT ON COLUMN code_units.is_newest IS 'Searched unless another is asked for.';

CREATE TABLE nodes (
	id TEXT NOT NULL,
	source TEXT NOT NULL,
	version TEXT NOT NULL,
	kind TEXT NOT NULL,
	label TEXT NOT NULL,
	path TEXT NOT NULL,
	body_ref TEXT,
	unit TEXT NOT NULL,
	position INTEGER NOT NULL,
	status TEXT,
	created_at INTEGER NOT NULL,
	parent TEXT NOT NULL,
	CONSTRAINT pk_nodes PRIMARY KEY (id)
);

CREATE INDEX ix_nodes_unit_position ON nodes (unit, position);

CREATE INDEX ix_nodes_source_version ON nodes (source, version);

CREATE INDEX ix_nodes_parent ON nodes (parent, unit, position);

COMMENT ON COLUMN nodes.id IS 'Hierarchical: the parent is a strict prefix.';

COMMENT ON COLUMN nodes.path IS 'The segments below the edition''s root.';

COMMENT ON COLUMN nodes.body_ref IS '<pack>#<offset>+<length>; NULL for a container.';

COMMENT ON COLUMN nodes.unit IS 'code_units.id';

COMMENT ON COLUMN nodes.position IS 'In reading order, within the unit.';

COMMENT ON COLUMN nodes.status IS 'repealed, reserved, …; NULL is in force.';

COMMENT ON COLUMN nodes.created_at IS 'Unix seconds.';

COMMENT ON COLUMN nodes.parent IS 'The id above: id without its last segment.';

CREATE TABLE document_chunk_buffer (
	id SERIAL NOT NULL,
	chunk_id UUID NOT NULL,
	document_id UUID NOT NULL,
	chunk_ord INTEGER NOT NULL,
	chunker_name TEXT NOT NULL,
	chunker_version TEXT NOT NULL,
	chunk_sha TEXT NOT NULL,
	text TEXT NOT NULL,
	meta JSONB NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_document_chunk_buffer PRIMARY KEY (id),
	CONSTRAINT uq_document_chunk_buffer_chunk_id UNIQUE (chunk_id)
);

CREATE INDEX ix_document_chunk_buffer_document_id ON document_chunk_buffer (document_id, chunk_ord);

CREATE INDEX ix_document_chunk_buffer_chunk_sha ON document_chunk_buffer (chunk_sha);

COMMENT ON COLUMN document_chunk_buffer.id IS 'Row of the full-text index.';

COMMENT ON COLUMN document_chunk_buffer.document_id IS 'documents.uid';

COMMENT ON COLUMN document_chunk_buffer.meta IS 'start, end, tokens, locator';

CREATE TABLE embedding_models (
	name TEXT NOT NULL,
	version TEXT NOT NULL,
	dims INTEGER NOT NULL,
	price FLOAT NOT NULL,
	CONSTRAINT pk_embedding_models PRIMARY KEY (name, version)
);

COMMENT ON COLUMN embedding_models.price IS 'USD for a million tokens.';

CREATE TABLE webhook_nonces (
	webhook_id TEXT NOT NULL,
	received_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_webhook_nonces PRIMARY KEY (webhook_id)
);

CREATE INDEX ix_webhook_nonces_received_at ON webhook_nonces (received_at);

CREATE TABLE users (
	id UUID NOT NULL,
	name TEXT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_users PRIMARY KEY (id),
	CONSTRAINT ck_users_named CHECK (name <> ''),
	CONSTRAINT uq_users_name UNIQUE (name)
);

CREATE TABLE ingestion_runs (
	id UUID NOT NULL,
	source TEXT NOT NULL,
	mode TEXT NOT NULL,
	status TEXT NOT NULL,
	started_at TIMESTAMP WITH TIME ZONE NOT NULL,
	finished_at TIMESTAMP WITH TIME ZONE,
	discovered_count INTEGER DEFAULT 0 NOT NULL,
	fetched_count INTEGER DEFAULT 0 NOT NULL,
	parsed_count INTEGER DEFAULT 0 NOT NULL,
	inserted_count INTEGER DEFAULT 0 NOT NULL,
	updated_count INTEGER DEFAULT 0 NOT NULL,
	skipped_count INTEGER DEFAULT 0 NOT NULL,
	error_count INTEGER DEFAULT 0 NOT NULL,
	gone_count INTEGER DEFAULT 0 NOT NULL,
	config JSONB NOT NULL,
	error_summary TEXT,
	CONSTRAINT pk_ingestion_runs PRIMARY KEY (id),
	CONSTRAINT ck_ingestion_runs_mode CHECK (mode IN ('incremental', 'backfill', 'manual')),
	CONSTRAINT ck_ingestion_runs_status CHECK (status IN ('running', 'success', 'partial', 'failed', 'cancelled')),
	CONSTRAINT ck_ingestion_runs_finished CHECK ((status = 'running') = (finished_at IS NULL))
);

CREATE INDEX ix_ingestion_runs_source_started ON ingestion_runs (source, started_at);

CREATE INDEX ix_ingestion_runs_started ON ingestion_runs (started_at, id);

CREATE INDEX ix_ingestion_runs_status ON ingestion_runs (status, started_at) WHERE status IN ('running', 'failed');

CREATE TABLE ingestion_source_state (
	source TEXT NOT NULL,
	last_run_at TIMESTAMP WITH TIME ZONE,
	last_success_at TIMESTAMP WITH TIME ZONE,
	last_seen_key TEXT,
	custom JSONB NOT NULL,
	CONSTRAINT pk_ingestion_source_state PRIMARY KEY (source)
);

CREATE TABLE ingestion_inputs (
	source TEXT NOT NULL,
	task_key TEXT NOT NULL,
	input_sha256 TEXT NOT NULL,
	recipe TEXT NOT NULL,
	fingerprint TEXT,
	records INTEGER NOT NULL,
	validated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_ingestion_inputs PRIMARY KEY (source, task_key)
);

COMMENT ON COLUMN ingestion_inputs.input_sha256 IS 'Over the bytes and parameters.';

COMMENT ON COLUMN ingestion_inputs.recipe IS 'Version of everything that read them.';

COMMENT ON COLUMN ingestion_inputs.fingerprint IS 'Of the listing''s entry, where there is one.';

COMMENT ON COLUMN ingestion_inputs.records IS 'How many it yielded.';

COMMENT ON COLUMN ingestion_inputs.validated_at IS 'Last asked for upstream.';

CREATE TABLE fetched_files (
	source TEXT NOT NULL,
	url TEXT NOT NULL,
	blob_key TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	size INTEGER NOT NULL,
	media_type TEXT,
	etag TEXT,
	last_modified TEXT,
	retrieved_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_fetched_files PRIMARY KEY (source, url)
);

CREATE INDEX ix_fetched_files_blob_key ON fetched_files (blob_key);

CREATE TABLE ingestion_normalization_queue (
	id SERIAL NOT NULL,
	table_name TEXT NOT NULL,
	record_id TEXT NOT NULL,
	raw_path TEXT NOT NULL,
	raw_format TEXT NOT NULL,
	input_sha TEXT NOT NULL,
	enqueued_at TIMESTAMP WITH TIME ZONE NOT NULL,
	attempts INTEGER DEFAULT 0 NOT NULL,
	last_attempt_at TIMESTAMP WITH TIME ZONE,
	last_error TEXT,
	lease_owner TEXT,
	lease_until TIMESTAMP WITH TIME ZONE,
	CONSTRAINT pk_ingestion_normalization_queue PRIMARY KEY (id),
	CONSTRAINT uq_ingestion_normalization_queue_table_name_record_id UNIQUE (table_name, record_id)
);

CREATE INDEX ingestion_normalization_queue_pending ON ingestion_normalization_queue (id) WHERE attempts < 5;

CREATE TABLE ingestion_embedding_queue (
	id SERIAL NOT NULL,
	table_name TEXT NOT NULL,
	record_id TEXT NOT NULL,
	input_sha TEXT NOT NULL,
	enqueued_at TIMESTAMP WITH TIME ZONE NOT NULL,
	attempts INTEGER DEFAULT 0 NOT NULL,
	last_attempt_at TIMESTAMP WITH TIME ZONE,
	last_error TEXT,
	lease_owner TEXT,
	lease_until TIMESTAMP WITH TIME ZONE,
	CONSTRAINT pk_ingestion_embedding_queue PRIMARY KEY (id),
	CONSTRAINT uq_ingestion_embedding_queue_table_name_record_id UNIQUE (table_name, record_id)
);

CREATE INDEX ingestion_embedding_queue_pending ON ingestion_embedding_queue (id) WHERE attempts < 5;

CREATE TABLE ingestion_citation_queue (
	id SERIAL NOT NULL,
	table_name TEXT NOT NULL,
	record_id TEXT NOT NULL,
	input_sha TEXT NOT NULL,
	enqueued_at TIMESTAMP WITH TIME ZONE NOT NULL,
	attempts INTEGER DEFAULT 0 NOT NULL,
	last_attempt_at TIMESTAMP WITH TIME ZONE,
	last_error TEXT,
	lease_owner TEXT,
	lease_until TIMESTAMP WITH TIME ZONE,
	CONSTRAINT pk_ingestion_citation_queue PRIMARY KEY (id),
	CONSTRAINT uq_ingestion_citation_queue_table_name_record_id UNIQUE (table_name, record_id)
);

CREATE INDEX ingestion_citation_queue_pending ON ingestion_citation_queue (id) WHERE attempts < 5;

CREATE TABLE ingestion_commands (
	id SERIAL NOT NULL,
	command TEXT NOT NULL,
	source TEXT,
	args JSONB NOT NULL,
	requested_by TEXT NOT NULL,
	requested_at TIMESTAMP WITH TIME ZONE NOT NULL,
	claimed_by TEXT,
	lease_until TIMESTAMP WITH TIME ZONE,
	finished_at TIMESTAMP WITH TIME ZONE,
	outcome TEXT,
	run_id UUID,
	CONSTRAINT pk_ingestion_commands PRIMARY KEY (id)
);

CREATE INDEX ix_ingestion_commands_open ON ingestion_commands (id) WHERE finished_at IS NULL;

COMMENT ON COLUMN ingestion_commands.run_id IS 'ingestion_runs.id of the run that came of it.';

CREATE TABLE ingestion_audits (
	id SERIAL NOT NULL,
	source TEXT NOT NULL,
	audited_at TIMESTAMP WITH TIME ZONE NOT NULL,
	requested_by TEXT NOT NULL,
	expected INTEGER NOT NULL,
	missing INTEGER NOT NULL,
	open_errors INTEGER NOT NULL,
	findings JSONB NOT NULL,
	CONSTRAINT pk_ingestion_audits PRIMARY KEY (id)
);

CREATE INDEX ix_ingestion_audits_source ON ingestion_audits (source, audited_at);

COMMENT ON TABLE ingestion_audits IS 'What audits found.';

COMMENT ON COLUMN ingestion_audits.expected IS 'Documents that the upstream lists.';

COMMENT ON COLUMN ingestion_audits.missing IS 'Of them, not held.';

COMMENT ON COLUMN ingestion_audits.open_errors IS 'Failures that were open then.';

COMMENT ON COLUMN ingestion_audits.findings IS 'By list of the upstream, some of each.';

CREATE TABLE ingestion_leases (
	name TEXT NOT NULL,
	owner TEXT NOT NULL,
	lease_until TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_ingestion_leases PRIMARY KEY (name)
);

CREATE TABLE table_versions (
	source TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	CONSTRAINT pk_table_versions PRIMARY KEY (source)
);

COMMENT ON COLUMN table_versions.source IS 'A plugin that brought its own tables.';

COMMENT ON COLUMN table_versions.fingerprint IS 'Of the tables'' columns.';

CREATE TABLE websites (
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	base_url TEXT NOT NULL,
	description TEXT,
	crawl_frequency TEXT,
	enabled BOOLEAN NOT NULL,
	rendered BOOLEAN NOT NULL,
	output TEXT,
	standing JSONB,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT websites_pkey PRIMARY KEY (id)
);

COMMENT ON TABLE websites IS 'Websites that were crawled, and how their PDFs are found.';

COMMENT ON COLUMN websites.id IS 'As its configuration names it.';

COMMENT ON COLUMN websites.name IS 'Of the office, for people.';

COMMENT ON COLUMN websites.description IS 'As its configuration has it.';

COMMENT ON COLUMN websites.crawl_frequency IS 'daily, weekly, monthly, quarterly, yearly; else only when asked.';

COMMENT ON COLUMN websites.rendered IS 'Its pages are rendered by a browser.';

COMMENT ON COLUMN websites.output IS 'Address where the last crawl left its files.';

COMMENT ON COLUMN websites.standing IS 'The strategy in use, its state and scores.';

CREATE TABLE site_addresses (
	website_id TEXT NOT NULL,
	key TEXT NOT NULL,
	url TEXT NOT NULL,
	kind TEXT NOT NULL,
	state TEXT NOT NULL,
	crawl_id UUID NOT NULL,
	depth INTEGER NOT NULL,
	turn INTEGER NOT NULL,
	place BIGINT NOT NULL,
	trail JSONB NOT NULL,
	found_on TEXT,
	text TEXT,
	organization TEXT,
	period TEXT,
	origin TEXT,
	error TEXT,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT site_addresses_pkey PRIMARY KEY (website_id, key),
	CONSTRAINT kind CHECK (kind IN ('page', 'pdf'))
);

CREATE INDEX ix_site_addresses_next ON site_addresses (website_id, kind, state, depth, place);

COMMENT ON TABLE site_addresses IS 'Pages to visit and PDFs to fetch: where a crawl goes on after it was stopped.';

COMMENT ON COLUMN site_addresses.key IS 'Half of the SHA-256 of the address.';

COMMENT ON COLUMN site_addresses.kind IS 'page or pdf.';

COMMENT ON COLUMN site_addresses.state IS 'How far it has come in this crawl.';

COMMENT ON COLUMN site_addresses.crawl_id IS 'The crawl that saw it last.';

COMMENT ON COLUMN site_addresses.depth IS 'Links between it and the base address.';

COMMENT ON COLUMN site_addresses.turn IS 'Which page of a list on several pages.';

COMMENT ON COLUMN site_addresses.place IS 'Order in which it was seen.';

COMMENT ON COLUMN site_addresses.trail IS 'Texts of the links that lead to it.';

COMMENT ON COLUMN site_addresses.found_on IS 'Address of the page that it was seen on.';

COMMENT ON COLUMN site_addresses.text IS 'Of the link.';

COMMENT ON COLUMN site_addresses.organization IS 'Whose report it is, as the page tells.';

COMMENT ON COLUMN site_addresses.period IS 'Of the report: 2024-Q1, 2024-annual.';

COMMENT ON COLUMN site_addresses.origin IS 'The archived page, as JSON.';

COMMENT ON COLUMN site_addresses.error IS 'Why it failed.';

CREATE TABLE crec_issues (
	id TEXT NOT NULL,
	date_issued TEXT,
	volume INTEGER,
	issue INTEGER,
	congress INTEGER,
	session INTEGER,
	granules INTEGER NOT NULL,
	task_key TEXT,
	CONSTRAINT pk_crec_issues PRIMARY KEY (id)
);

CREATE INDEX ix_crec_issues_date_issued ON crec_issues (date_issued);

COMMENT ON TABLE crec_issues IS 'Issues of the daily edition.';

COMMENT ON COLUMN crec_issues.id IS 'The package: CREC-2026-02-03.';

COMMENT ON COLUMN crec_issues.date_issued IS 'The day of the issue, ISO 8601.';

COMMENT ON COLUMN crec_issues.volume IS 'One for each year: 172.';

COMMENT ON COLUMN crec_issues.issue IS 'Within the volume.';

COMMENT ON COLUMN crec_issues.congress IS '119.';

COMMENT ON COLUMN crec_issues.session IS 'Of that Congress.';

COMMENT ON COLUMN crec_issues.granules IS 'How many the MODS lists.';

COMMENT ON COLUMN crec_issues.task_key IS 'The input this row was last loaded from.';

CREATE TABLE lda_registrants (
	id TEXT NOT NULL,
	house_registrant_id INTEGER,
	url TEXT,
	name TEXT,
	description TEXT,
	address_1 TEXT,
	address_2 TEXT,
	address_3 TEXT,
	address_4 TEXT,
	city TEXT,
	zip TEXT,
	state TEXT,
	state_display TEXT,
	country TEXT,
	country_display TEXT,
	ppb_country TEXT,
	ppb_country_display TEXT,
	contact_name TEXT,
	contact_telephone TEXT,
	dt_updated TEXT,
	CONSTRAINT pk_lda_registrants PRIMARY KEY (id)
);

COMMENT ON TABLE lda_registrants IS 'Lobbying firms, and organizations with lobbyists of their own, as last published.';

COMMENT ON COLUMN lda_registrants.id IS 'registrant.id: the Senate''s number of it.';

COMMENT ON COLUMN lda_registrants.house_registrant_id IS 'The Clerk of the House''s number of it.';

COMMENT ON COLUMN lda_registrants.url IS 'Its record in the API.';

COMMENT ON COLUMN lda_registrants.name IS 'In capitals, mostly.';

COMMENT ON COLUMN lda_registrants.description IS 'What it does.';

COMMENT ON COLUMN lda_registrants.address_1 IS 'First line; in the quarterly files the whole address.';

COMMENT ON COLUMN lda_registrants.address_2 IS 'Second line.';

COMMENT ON COLUMN lda_registrants.address_3 IS 'Third line.';

COMMENT ON COLUMN lda_registrants.address_4 IS 'Fourth line.';

COMMENT ON COLUMN lda_registrants.city IS 'City.';

COMMENT ON COLUMN lda_registrants.zip IS 'ZIP code.';

COMMENT ON COLUMN lda_registrants.state IS 'Postal code.';

COMMENT ON COLUMN lda_registrants.state_display IS 'Virginia.';

COMMENT ON COLUMN lda_registrants.country IS 'ISO code; empty where undetermined.';

COMMENT ON COLUMN lda_registrants.country_display IS 'United States of America.';

COMMENT ON COLUMN lda_registrants.ppb_country IS 'Of the principal place of business: ISO code.';

COMMENT ON COLUMN lda_registrants.ppb_country_display IS 'The same in words.';

COMMENT ON COLUMN lda_registrants.contact_name IS 'Whom to ask.';

COMMENT ON COLUMN lda_registrants.contact_telephone IS 'With country code.';

COMMENT ON COLUMN lda_registrants.dt_updated IS 'When the registrant last changed its record, ISO 8601.';

CREATE TABLE policy_areas (
	name TEXT NOT NULL,
	ord INTEGER NOT NULL,
	task_key TEXT,
	CONSTRAINT pk_policy_areas PRIMARY KEY (name)
);

COMMENT ON TABLE policy_areas IS 'Policy areas, one of which the Congressional Research Service assigns to a bill.';

COMMENT ON COLUMN policy_areas.name IS 'As bills state it: Agriculture and Food.';

COMMENT ON COLUMN policy_areas.ord IS 'Place in the publisher''s list, from 1.';

COMMENT ON COLUMN policy_areas.task_key IS 'The input this row was last loaded from.';

CREATE TABLE agencies (
	id INTEGER NOT NULL,
	name TEXT NOT NULL,
	parent_ref INTEGER,
	parent_id INTEGER,
	short_name TEXT,
	slug TEXT,
	url TEXT,
	agency_url TEXT,
	json_url TEXT,
	description TEXT,
	task_key TEXT,
	CONSTRAINT pk_agencies PRIMARY KEY (id),
	CONSTRAINT fk_agencies_parent_id FOREIGN KEY(parent_id) REFERENCES agencies (id) ON DELETE SET NULL
);

CREATE INDEX ix_agencies_parent_id ON agencies (parent_id);

CREATE INDEX ix_agencies_slug ON agencies (slug);

COMMENT ON TABLE agencies IS 'Federal agencies as the Federal Register knows them.';

COMMENT ON COLUMN agencies.id IS 'As upstream.';

COMMENT ON COLUMN agencies.name IS 'Agriculture Department.';

COMMENT ON COLUMN agencies.parent_ref IS 'Id of the department above, as upstream states it.';

COMMENT ON COLUMN agencies.parent_id IS 'The department above, once it is loaded.';

COMMENT ON COLUMN agencies.short_name IS 'USDA.';

COMMENT ON COLUMN agencies.slug IS 'The name in addresses: agriculture-department.';

COMMENT ON COLUMN agencies.url IS 'Its page at federalregister.gov.';

COMMENT ON COLUMN agencies.agency_url IS 'Its own site.';

COMMENT ON COLUMN agencies.json_url IS 'Its record in the API.';

COMMENT ON COLUMN agencies.description IS 'What it does, as the Federal Register describes it.';

COMMENT ON COLUMN agencies.task_key IS 'The input this row was last loaded from.';

CREATE TABLE document_versions (
	document_id TEXT NOT NULL,
	content_sha256 TEXT NOT NULL,
	raw_sha256 TEXT NOT NULL,
	archive_key TEXT NOT NULL,
	body_raw_sha256 TEXT,
	body_archive_key TEXT,
	body_text_sha256 TEXT,
	first_seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
	last_seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
	source TEXT,
	CONSTRAINT pk_document_versions PRIMARY KEY (document_id, content_sha256),
	CONSTRAINT fk_document_versions_document_id FOREIGN KEY(document_id) REFERENCES documents (id)
);

CREATE INDEX ix_document_versions_source ON document_versions (source, first_seen_at, document_id);

CREATE INDEX ix_document_versions_first_seen_at ON document_versions (first_seen_at, document_id);

COMMENT ON COLUMN document_versions.source IS 'documents.source';

CREATE TABLE document_aliases (
	alias TEXT NOT NULL,
	document_id TEXT NOT NULL,
	edition TEXT,
	CONSTRAINT pk_document_aliases PRIMARY KEY (alias, document_id),
	CONSTRAINT fk_document_aliases_document_id FOREIGN KEY(document_id) REFERENCES documents (id)
);

CREATE INDEX ix_document_aliases_document_id ON document_aliases (document_id);

CREATE TABLE citation_edges (
	from_document_id TEXT NOT NULL,
	start INTEGER NOT NULL,
	"end" INTEGER NOT NULL,
	locator JSONB NOT NULL,
	raw TEXT NOT NULL,
	kind TEXT NOT NULL,
	target TEXT NOT NULL,
	pinpoint TEXT,
	to_document_id TEXT,
	CONSTRAINT pk_citation_edges PRIMARY KEY (from_document_id, start),
	CONSTRAINT fk_citation_edges_from_document_id FOREIGN KEY(from_document_id) REFERENCES documents (id) ON DELETE CASCADE,
	CONSTRAINT fk_citation_edges_to_document_id FOREIGN KEY(to_document_id) REFERENCES documents (id) ON DELETE SET NULL
);

CREATE INDEX ix_citation_edges_target ON citation_edges (target, to_document_id);

CREATE INDEX ix_citation_edges_to_document_id ON citation_edges (to_document_id, target);

COMMENT ON COLUMN citation_edges.from_document_id IS 'The document that cites.';

COMMENT ON COLUMN citation_edges.start IS 'In body_text.';

COMMENT ON COLUMN citation_edges."end" IS 'In body_text, exclusive.';

COMMENT ON COLUMN citation_edges.locator IS 'Of the passage that contains it.';

COMMENT ON COLUMN citation_edges.raw IS 'As the document writes it.';

COMMENT ON COLUMN citation_edges.kind IS 'usc, cfr, public_law, bill, fr, case, …';

COMMENT ON COLUMN citation_edges.target IS 'As document_aliases would have it.';

COMMENT ON COLUMN citation_edges.pinpoint IS 'The place within the target: (a)(1), a page.';

COMMENT ON COLUMN citation_edges.to_document_id IS 'The document cited, once it is held.';

CREATE TABLE document_vector_buffer (
	document_id UUID NOT NULL,
	chunk_id UUID NOT NULL,
	embed_model TEXT NOT NULL,
	embed_version TEXT NOT NULL,
	vector BYTEA NOT NULL,
	vector_sha TEXT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_document_vector_buffer PRIMARY KEY (chunk_id, embed_model, embed_version),
	CONSTRAINT fk_document_vector_buffer_chunk_id FOREIGN KEY(chunk_id) REFERENCES document_chunk_buffer (chunk_id) ON DELETE CASCADE
);

CREATE INDEX ix_document_vector_buffer_document_id ON document_vector_buffer (document_id, embed_model, embed_version);

COMMENT ON COLUMN document_vector_buffer.vector IS 'float32, little-endian';

COMMENT ON COLUMN document_vector_buffer.vector_sha IS 'sha256 of the base64 of vector';

CREATE TABLE embedding_generations (
	id SERIAL NOT NULL,
	name TEXT NOT NULL,
	version TEXT NOT NULL,
	embedder TEXT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	filled_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT pk_embedding_generations PRIMARY KEY (id),
	CONSTRAINT fk_embedding_generations_name_version FOREIGN KEY(name, version) REFERENCES embedding_models (name, version),
	CONSTRAINT uq_embedding_generations_name_version UNIQUE (name, version)
);

COMMENT ON COLUMN embedding_generations.id IS 'Its vector index is named after it.';

COMMENT ON COLUMN embedding_generations.embedder IS 'How the model is opened: wordllama, …';

COMMENT ON COLUMN embedding_generations.filled_at IS 'When every passage first had a vector of it.';

CREATE TABLE upload_jobs (
	job_id UUID NOT NULL,
	user_id UUID NOT NULL,
	document_id UUID NOT NULL,
	status TEXT NOT NULL,
	name TEXT NOT NULL,
	format TEXT NOT NULL,
	bytes BIGINT NOT NULL,
	raw_sha256 TEXT NOT NULL,
	raw_path TEXT NOT NULL,
	parser TEXT NOT NULL,
	submission JSONB,
	parsed_path TEXT,
	parsed_sha256 TEXT,
	parsed_bytes BIGINT,
	parsed_by TEXT,
	chunks_version TEXT NOT NULL,
	embed_model TEXT,
	embed_version TEXT,
	progress JSONB,
	retry_count INTEGER DEFAULT 0 NOT NULL,
	next_attempt_at TIMESTAMP WITH TIME ZONE,
	takeovers INTEGER DEFAULT 0 NOT NULL,
	reprocessed INTEGER DEFAULT 0 NOT NULL,
	last_error JSONB,
	lease_owner TEXT,
	lease_until TIMESTAMP WITH TIME ZONE,
	moved_by TEXT NOT NULL,
	moved_why TEXT NOT NULL,
	arrived_at TIMESTAMP WITH TIME ZONE,
	parsed_at TIMESTAMP WITH TIME ZONE,
	chunked_at TIMESTAMP WITH TIME ZONE,
	first_embedded_at TIMESTAMP WITH TIME ZONE,
	completed_at TIMESTAMP WITH TIME ZONE,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	parsed_map JSONB,
	CONSTRAINT pk_upload_jobs PRIMARY KEY (job_id),
	CONSTRAINT ck_upload_jobs_status CHECK (status IN ('uploaded', 'parse_queued', 'parsed', 'parse_validated', 'chunking', 'chunks_stored', 'embedding_queued', 'embedding_in_progress', 'embeddings_stored', 'complete', 'failed_parse', 'failed_chunking', 'failed_embedding')),
	CONSTRAINT ck_upload_jobs_counts CHECK (bytes >= 0 AND retry_count >= 0),
	CONSTRAINT fk_upload_jobs_user_id FOREIGN KEY(user_id) REFERENCES users (id)
);

CREATE INDEX idx_upload_jobs_status ON upload_jobs (status, created_at);

CREATE INDEX ix_upload_jobs_user_id ON upload_jobs (user_id, created_at, job_id);

CREATE INDEX ix_upload_jobs_parsed_sha256 ON upload_jobs (user_id, parsed_sha256);

CREATE UNIQUE INDEX idx_upload_jobs_document ON upload_jobs (document_id);

COMMENT ON COLUMN upload_jobs.document_id IS 'documents.uid, in the end.';

COMMENT ON COLUMN upload_jobs.status IS 'Illegal moves are refused by a trigger.';

COMMENT ON COLUMN upload_jobs.name IS 'Of the file, as the user calls it.';

COMMENT ON COLUMN upload_jobs.format IS 'pdf, docx, html, markdown, text';

COMMENT ON COLUMN upload_jobs.bytes IS 'Of the file.';

COMMENT ON COLUMN upload_jobs.raw_sha256 IS 'Of the file.';

COMMENT ON COLUMN upload_jobs.raw_path IS 'Blob key of the file.';

COMMENT ON COLUMN upload_jobs.parser IS 'local, llamaparse';

COMMENT ON COLUMN upload_jobs.submission IS 'At an outside parser: its id, when it was asked.';

COMMENT ON COLUMN upload_jobs.parsed_path IS 'Blob key of the Markdown.';

COMMENT ON COLUMN upload_jobs.parsed_by IS 'name@version of what made the Markdown.';

COMMENT ON COLUMN upload_jobs.chunks_version IS 'chunker@semver';

COMMENT ON COLUMN upload_jobs.progress IS 'chunks_total, chunks_done, embeds_total, embeds_done';

COMMENT ON COLUMN upload_jobs.next_attempt_at IS 'Not to be worked on before.';

COMMENT ON COLUMN upload_jobs.last_error IS 'stage, type, message, at';

COMMENT ON COLUMN upload_jobs.moved_by IS 'Who made the last move: the event says so.';

COMMENT ON COLUMN upload_jobs.arrived_at IS 'When the file was there, as it was announced.';

COMMENT ON COLUMN upload_jobs.parsed_map IS 'As documents.body_map will have it.';

CREATE TABLE api_tokens (
	id UUID NOT NULL,
	user_id UUID NOT NULL,
	label TEXT NOT NULL,
	scope TEXT NOT NULL,
	token_sha256 TEXT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	expires_at TIMESTAMP WITH TIME ZONE,
	revoked_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT pk_api_tokens PRIMARY KEY (id),
	CONSTRAINT ck_api_tokens_scope CHECK (scope IN ('user', 'admin', 'service')),
	CONSTRAINT fk_api_tokens_user_id FOREIGN KEY(user_id) REFERENCES users (id),
	CONSTRAINT uq_api_tokens_token_sha256 UNIQUE (token_sha256)
);

CREATE INDEX ix_api_tokens_user_id ON api_tokens (user_id);

COMMENT ON COLUMN api_tokens.label IS 'What it is for.';

COMMENT ON COLUMN api_tokens.token_sha256 IS 'It is stored nowhere else.';

CREATE TABLE idempotency_keys (
	user_id UUID NOT NULL,
	key TEXT NOT NULL,
	request_sha256 TEXT NOT NULL,
	status INTEGER,
	answer JSONB,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_idempotency_keys PRIMARY KEY (user_id, key),
	CONSTRAINT fk_idempotency_keys_user_id FOREIGN KEY(user_id) REFERENCES users (id)
);

CREATE INDEX ix_idempotency_keys_created_at ON idempotency_keys (created_at);

COMMENT ON COLUMN idempotency_keys.request_sha256 IS 'Over method, path and body.';

COMMENT ON COLUMN idempotency_keys.status IS 'Of the answer; NULL while it is being made.';

CREATE TABLE ingestion_logs (
	id SERIAL NOT NULL,
	run_id UUID NOT NULL,
	logged_at TIMESTAMP WITH TIME ZONE NOT NULL,
	level TEXT NOT NULL,
	message TEXT NOT NULL,
	context JSONB,
	CONSTRAINT pk_ingestion_logs PRIMARY KEY (id),
	CONSTRAINT ck_ingestion_logs_level CHECK (level IN ('debug', 'info', 'warn', 'error')),
	CONSTRAINT fk_ingestion_logs_run_id FOREIGN KEY(run_id) REFERENCES ingestion_runs (id) ON DELETE CASCADE
);

CREATE INDEX ix_ingestion_logs_run ON ingestion_logs (run_id, logged_at);

CREATE INDEX ix_ingestion_logs_errors ON ingestion_logs (run_id, logged_at) WHERE level = 'error';

CREATE TABLE ingestion_tasks (
	id SERIAL NOT NULL,
	run_id UUID NOT NULL,
	source TEXT NOT NULL,
	task_key TEXT NOT NULL,
	stage TEXT NOT NULL,
	started_at TIMESTAMP WITH TIME ZONE NOT NULL,
	finished_at TIMESTAMP WITH TIME ZONE,
	error TEXT,
	error_type TEXT,
	error_stage TEXT,
	task JSONB,
	attempts INTEGER DEFAULT 0 NOT NULL,
	resolved_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT pk_ingestion_tasks PRIMARY KEY (id),
	CONSTRAINT ck_ingestion_tasks_stage CHECK (stage IN ('discovered', 'fetched', 'parsed', 'loaded', 'errored')),
	CONSTRAINT uq_ingestion_tasks_run_id_task_key UNIQUE (run_id, task_key),
	CONSTRAINT fk_ingestion_tasks_run_id FOREIGN KEY(run_id) REFERENCES ingestion_runs (id) ON DELETE CASCADE
);

CREATE INDEX ix_ingestion_tasks_run ON ingestion_tasks (run_id, stage);

CREATE INDEX ix_ingestion_tasks_open_errors ON ingestion_tasks (source, task_key) WHERE stage = 'errored' AND resolved_at IS NULL;

COMMENT ON COLUMN ingestion_tasks.error IS 'What went wrong, for people.';

COMMENT ON COLUMN ingestion_tasks.error_type IS 'Name of the error, to group by.';

COMMENT ON COLUMN ingestion_tasks.error_stage IS 'fetch, parse, load or discover';

COMMENT ON COLUMN ingestion_tasks.task IS 'The task itself while it is errored, for the next run.';

COMMENT ON COLUMN ingestion_tasks.resolved_at IS 'When a later run loaded it, or it was dismissed.';

CREATE TABLE ingestion_stages (
	run_id UUID NOT NULL,
	stage TEXT NOT NULL,
	began_at TIMESTAMP WITH TIME ZONE NOT NULL,
	ended_at TIMESTAMP WITH TIME ZONE NOT NULL,
	items INTEGER DEFAULT 0 NOT NULL,
	seconds FLOAT NOT NULL,
	waited_seconds FLOAT NOT NULL,
	retries INTEGER DEFAULT 0 NOT NULL,
	CONSTRAINT pk_ingestion_stages PRIMARY KEY (run_id, stage),
	CONSTRAINT ck_ingestion_stages_stage CHECK (stage IN ('discover', 'fetch', 'parse', 'load')),
	CONSTRAINT fk_ingestion_stages_run_id_ingestion_runs FOREIGN KEY(run_id) REFERENCES ingestion_runs (id) ON DELETE CASCADE
);

COMMENT ON TABLE ingestion_stages IS 'What each stage of a run took.';

COMMENT ON COLUMN ingestion_stages.ended_at IS 'When it last did something.';

COMMENT ON COLUMN ingestion_stages.seconds IS 'Spent on them, added up.';

COMMENT ON COLUMN ingestion_stages.waited_seconds IS 'Of them, for a host''s rate limit.';

CREATE TABLE site_files (
	id TEXT NOT NULL,
	website_id TEXT NOT NULL,
	url TEXT NOT NULL,
	found_on TEXT,
	link_text TEXT,
	organization TEXT,
	period TEXT,
	sha256 TEXT NOT NULL,
	size BIGINT NOT NULL,
	CONSTRAINT site_files_pkey PRIMARY KEY (id),
	CONSTRAINT site_files_id_fkey FOREIGN KEY(id) REFERENCES documents (id)
);

CREATE INDEX ix_site_files_website_id ON site_files (website_id);

CREATE INDEX ix_site_files_sha256 ON site_files (sha256);

COMMENT ON TABLE site_files IS 'PDFs of websites.';

COMMENT ON COLUMN site_files.id IS 'site:tokyo/1f0a…, documents.id.';

COMMENT ON COLUMN site_files.website_id IS 'websites.id';

COMMENT ON COLUMN site_files.url IS 'Where the PDF is.';

COMMENT ON COLUMN site_files.found_on IS 'The page that lists it.';

COMMENT ON COLUMN site_files.link_text IS 'Of the link on that page.';

COMMENT ON COLUMN site_files.organization IS 'Whose report it is, as the page tells.';

COMMENT ON COLUMN site_files.period IS 'Of the report: 2024-Q1, 2024-annual.';

COMMENT ON COLUMN site_files.sha256 IS 'Of the PDF.';

COMMENT ON COLUMN site_files.size IS 'Of the PDF, in bytes.';

CREATE TABLE committees (
	id TEXT NOT NULL,
	thomas_id TEXT NOT NULL,
	type TEXT NOT NULL,
	name TEXT NOT NULL,
	parent_ref TEXT,
	parent_id TEXT,
	is_current BOOLEAN,
	house_committee_id TEXT,
	senate_committee_id TEXT,
	url TEXT,
	minority_url TEXT,
	address TEXT,
	phone TEXT,
	rss_url TEXT,
	minority_rss_url TEXT,
	jurisdiction TEXT,
	jurisdiction_source TEXT,
	wikipedia TEXT,
	youtube_id TEXT,
	CONSTRAINT pk_committees PRIMARY KEY (id),
	CONSTRAINT fk_committees_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT fk_committees_parent_id FOREIGN KEY(parent_id) REFERENCES committees (id)
);

CREATE INDEX ix_committees_parent_id ON committees (parent_id);

COMMENT ON COLUMN committees.id IS 'committee:<code>';

COMMENT ON COLUMN committees.thomas_id IS 'Four letters; two digits below another.';

COMMENT ON COLUMN committees.type IS 'house, senate or joint.';

COMMENT ON COLUMN committees.name IS 'Without `Subcommittee on` in most cases.';

COMMENT ON COLUMN committees.parent_ref IS 'committee:<code> of the committee above.';

COMMENT ON COLUMN committees.parent_id IS 'committees.id once it is loaded.';

COMMENT ON COLUMN committees.is_current IS 'Is in the current list; NULL where nothing says.';

COMMENT ON COLUMN committees.house_committee_id IS 'Two letters of the Clerk of the House.';

COMMENT ON COLUMN committees.senate_committee_id IS 'Four letters of the Senate.';

COMMENT ON COLUMN committees.url IS 'Website.';

COMMENT ON COLUMN committees.minority_url IS 'Website of the minority.';

COMMENT ON COLUMN committees.address IS 'Office.';

COMMENT ON COLUMN committees.phone IS 'Office.';

COMMENT ON COLUMN committees.rss_url IS 'Feed.';

COMMENT ON COLUMN committees.minority_rss_url IS 'Feed of the minority.';

COMMENT ON COLUMN committees.jurisdiction IS 'What it has to decide on, in its own words.';

COMMENT ON COLUMN committees.jurisdiction_source IS 'The source of those words.';

COMMENT ON COLUMN committees.wikipedia IS 'Name of the article.';

COMMENT ON COLUMN committees.youtube_id IS 'Official channel.';

CREATE TABLE crec_granules (
	id TEXT NOT NULL,
	issue_ref TEXT,
	issue_id TEXT,
	access_id TEXT NOT NULL,
	title TEXT NOT NULL,
	volume INTEGER,
	issue INTEGER,
	congress INTEGER,
	session INTEGER,
	book_number INTEGER,
	granule_class TEXT,
	sub_granule_class TEXT,
	chamber TEXT,
	date_issued TEXT,
	granule_date TEXT,
	page_start TEXT,
	page_end TEXT,
	time_from TEXT,
	time_to TEXT,
	CONSTRAINT pk_crec_granules PRIMARY KEY (id),
	CONSTRAINT fk_crec_granules_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT fk_crec_granules_issue_id FOREIGN KEY(issue_id) REFERENCES crec_issues (id)
);

CREATE INDEX ix_crec_granules_page ON crec_granules (volume, page_start);

CREATE INDEX ix_crec_granules_issue_id ON crec_granules (issue_id);

CREATE INDEX ix_crec_granules_date_issued ON crec_granules (date_issued);

COMMENT ON TABLE crec_granules IS 'Articles of the Congressional Record.';

COMMENT ON COLUMN crec_granules.id IS 'crec:<granule>';

COMMENT ON COLUMN crec_granules.issue_ref IS 'The package it is in: CREC-2026-02-03.';

COMMENT ON COLUMN crec_granules.issue_id IS 'crec_issues.id once it is loaded.';

COMMENT ON COLUMN crec_granules.access_id IS 'CREC-2026-02-03-pt1-PgH501-2.';

COMMENT ON COLUMN crec_granules.title IS 'As printed, or the first words without one.';

COMMENT ON COLUMN crec_granules.volume IS '172.';

COMMENT ON COLUMN crec_granules.issue IS 'Within the volume.';

COMMENT ON COLUMN crec_granules.congress IS '119.';

COMMENT ON COLUMN crec_granules.session IS 'Of that Congress.';

COMMENT ON COLUMN crec_granules.book_number IS 'The part of a large issue: 1 of pt1.';

COMMENT ON COLUMN crec_granules.granule_class IS 'HOUSE, SENATE, EXTENSIONS or DAILYDIGEST.';

COMMENT ON COLUMN crec_granules.sub_granule_class IS 'PRAYER, FRONTMATTER, SNOMINATIONS, ALLOTHER, …';

COMMENT ON COLUMN crec_granules.chamber IS 'HOUSE or SENATE.';

COMMENT ON COLUMN crec_granules.date_issued IS 'The day of the issue, ISO 8601.';

COMMENT ON COLUMN crec_granules.granule_date IS 'The day it was said; earlier for extensions handed in late.';

COMMENT ON COLUMN crec_granules.page_start IS 'H501; NULL where the publisher knows none.';

COMMENT ON COLUMN crec_granules.page_end IS 'H502.';

COMMENT ON COLUMN crec_granules.time_from IS 'When it began, Eastern time, where printed.';

COMMENT ON COLUMN crec_granules.time_to IS 'When it ended.';

CREATE TABLE crs_reports (
	id TEXT NOT NULL,
	number TEXT NOT NULL,
	title TEXT NOT NULL,
	type TEXT,
	type_id TEXT,
	source TEXT,
	content_type TEXT,
	status TEXT,
	active BOOLEAN,
	version INTEGER,
	latest_pub_date TEXT,
	publication_date TEXT,
	publish_date TIMESTAMP WITH TIME ZONE,
	update_date TIMESTAMP WITH TIME ZONE,
	summary TEXT,
	latest_html TEXT,
	latest_pdf TEXT,
	sha1 TEXT,
	authors JSONB,
	related_materials JSONB,
	CONSTRAINT pk_crs_reports PRIMARY KEY (id),
	CONSTRAINT fk_crs_reports_id FOREIGN KEY(id) REFERENCES documents (id)
);

CREATE INDEX ix_crs_reports_number ON crs_reports (number);

COMMENT ON TABLE crs_reports IS 'Reports and other products of the Congressional Research Service.';

COMMENT ON COLUMN crs_reports.id IS 'crs:R48481, documents.id.';

COMMENT ON COLUMN crs_reports.number IS 'R48481, 98-807: what CRS calls it.';

COMMENT ON COLUMN crs_reports.title IS 'Of the newest version.';

COMMENT ON COLUMN crs_reports.type IS '`CRS Report`, `CRS Insight`, …, as EveryCRSReport.com words it.';

COMMENT ON COLUMN crs_reports.type_id IS '`REPORTS`, `INSIGHTS`, …: the same as a code.';

COMMENT ON COLUMN crs_reports.source IS 'Where EveryCRSReport.com has it from; several are joined by commas.';

COMMENT ON COLUMN crs_reports.content_type IS '`Reports`, `In Focus`, …, as congress.gov words it.';

COMMENT ON COLUMN crs_reports.status IS '`Active` or `Archived`, as congress.gov has it.';

COMMENT ON COLUMN crs_reports.active IS 'Whether CRS still maintained it when it was last seen.';

COMMENT ON COLUMN crs_reports.version IS 'Number of the newest version, as CRS counts them.';

COMMENT ON COLUMN crs_reports.latest_pub_date IS 'ISO day of the newest version: its cover date.';

COMMENT ON COLUMN crs_reports.publication_date IS 'ISO day of the first version, from SearchResults.csv.';

COMMENT ON COLUMN crs_reports.publish_date IS 'publishDate of congress.gov.';

COMMENT ON COLUMN crs_reports.update_date IS 'updateDate of congress.gov: of its record.';

COMMENT ON COLUMN crs_reports.summary IS 'Of the newest version, as plain text.';

COMMENT ON COLUMN crs_reports.latest_html IS 'Path or address of the newest version''s HTML.';

COMMENT ON COLUMN crs_reports.latest_pdf IS 'Path or address of the newest version''s PDF.';

COMMENT ON COLUMN crs_reports.sha1 IS 'Of the metadata file, as the list of EveryCRSReport.com has it.';

COMMENT ON COLUMN crs_reports.authors IS 'Names, from congress.gov; EveryCRSReport.com strikes them.';

COMMENT ON COLUMN crs_reports.related_materials IS 'Bills and laws it is about, from congress.gov: title, congress, type, number.';

CREATE TABLE fr_documents (
	id TEXT NOT NULL,
	document_number TEXT NOT NULL,
	publication_date TEXT,
	type TEXT,
	subtype TEXT,
	title TEXT NOT NULL,
	abstract TEXT,
	action TEXT,
	dates TEXT,
	citation TEXT,
	volume INTEGER,
	start_page INTEGER,
	end_page INTEGER,
	page_length INTEGER,
	effective_on TEXT,
	comments_close_on TEXT,
	signing_date TEXT,
	president TEXT,
	executive_order_number TEXT,
	executive_order_notes TEXT,
	proclamation_number TEXT,
	significant BOOLEAN,
	toc_subject TEXT,
	toc_doc TEXT,
	correction_of TEXT,
	html_url TEXT,
	pdf_url TEXT,
	json_url TEXT,
	full_text_xml_url TEXT,
	body_html_url TEXT,
	raw_text_url TEXT,
	mods_url TEXT,
	comment_url TEXT,
	regulations_dot_gov_url TEXT,
	CONSTRAINT pk_fr_documents PRIMARY KEY (id),
	CONSTRAINT fk_fr_documents_id FOREIGN KEY(id) REFERENCES documents (id)
);

CREATE INDEX ix_fr_documents_document_number ON fr_documents (document_number);

CREATE INDEX ix_fr_documents_publication_date ON fr_documents (publication_date);

CREATE INDEX ix_fr_documents_volume_start_page ON fr_documents (volume, start_page);

COMMENT ON TABLE fr_documents IS 'Documents of the Federal Register.';

COMMENT ON COLUMN fr_documents.id IS 'fr:2026-08558, documents.id.';

COMMENT ON COLUMN fr_documents.document_number IS 'Not unique before 2010.';

COMMENT ON COLUMN fr_documents.publication_date IS 'Day of the issue, ISO 8601.';

COMMENT ON COLUMN fr_documents.type IS 'Rule, Proposed Rule, Notice, Presidential Document.';

COMMENT ON COLUMN fr_documents.subtype IS 'Executive Order, Proclamation, …';

COMMENT ON COLUMN fr_documents.title IS 'As printed.';

COMMENT ON COLUMN fr_documents.abstract IS 'The summary.';

COMMENT ON COLUMN fr_documents.action IS 'What the document does: Final rule.';

COMMENT ON COLUMN fr_documents.dates IS 'The dates section, as printed.';

COMMENT ON COLUMN fr_documents.citation IS 'Volume and page: 91 FR 12345.';

COMMENT ON COLUMN fr_documents.volume IS 'Of the Federal Register.';

COMMENT ON COLUMN fr_documents.start_page IS 'First page.';

COMMENT ON COLUMN fr_documents.end_page IS 'Last page.';

COMMENT ON COLUMN fr_documents.page_length IS 'Number of pages.';

COMMENT ON COLUMN fr_documents.effective_on IS 'ISO date a rule takes effect.';

COMMENT ON COLUMN fr_documents.comments_close_on IS 'ISO date the comment period ends.';

COMMENT ON COLUMN fr_documents.signing_date IS 'ISO date a presidential document was signed.';

COMMENT ON COLUMN fr_documents.president IS 'Slug of the president who signed.';

COMMENT ON COLUMN fr_documents.executive_order_number IS 'Number of an executive order.';

COMMENT ON COLUMN fr_documents.executive_order_notes IS 'What it amends or revokes.';

COMMENT ON COLUMN fr_documents.proclamation_number IS 'Number of a proclamation.';

COMMENT ON COLUMN fr_documents.significant IS 'Under Executive Order 12866; NULL is unknown.';

COMMENT ON COLUMN fr_documents.toc_subject IS 'Heading in the table of contents.';

COMMENT ON COLUMN fr_documents.toc_doc IS 'Entry in the table of contents.';

COMMENT ON COLUMN fr_documents.correction_of IS 'Address of the document this one corrects.';

COMMENT ON COLUMN fr_documents.html_url IS 'Page for people.';

COMMENT ON COLUMN fr_documents.pdf_url IS 'Official PDF.';

COMMENT ON COLUMN fr_documents.json_url IS 'Record in the API.';

COMMENT ON COLUMN fr_documents.full_text_xml_url IS 'Full text; NULL where there is none.';

COMMENT ON COLUMN fr_documents.body_html_url IS 'Full text as HTML.';

COMMENT ON COLUMN fr_documents.raw_text_url IS 'Full text as plain text.';

COMMENT ON COLUMN fr_documents.mods_url IS 'Library metadata at govinfo.';

COMMENT ON COLUMN fr_documents.comment_url IS 'Where to comment.';

COMMENT ON COLUMN fr_documents.regulations_dot_gov_url IS 'The document at regulations.gov.';

CREATE TABLE gao_reports (
	id TEXT NOT NULL,
	product TEXT NOT NULL,
	title TEXT NOT NULL,
	link TEXT,
	guid TEXT,
	description TEXT,
	pub_date TIMESTAMP WITH TIME ZONE,
	published TEXT,
	publicly_released TEXT,
	fast_facts TEXT,
	html_url TEXT,
	pdf_url TEXT,
	CONSTRAINT pk_gao_reports PRIMARY KEY (id),
	CONSTRAINT fk_gao_reports_id FOREIGN KEY(id) REFERENCES documents (id)
);

CREATE INDEX ix_gao_reports_product ON gao_reports (product);

COMMENT ON TABLE gao_reports IS 'Products of the Government Accountability Office.';

COMMENT ON COLUMN gao_reports.id IS 'gao:GAO-26-107521, documents.id.';

COMMENT ON COLUMN gao_reports.product IS 'GAO-26-107521, in capitals.';

COMMENT ON COLUMN gao_reports.title IS 'As the feed has it, escapes undone.';

COMMENT ON COLUMN gao_reports.link IS 'The product''s page, as the feed names it.';

COMMENT ON COLUMN gao_reports.guid IS 'As the feed has it: a path.';

COMMENT ON COLUMN gao_reports.description IS 'What GAO found and why it did the study, as plain text.';

COMMENT ON COLUMN gao_reports.pub_date IS 'pubDate of the feed.';

COMMENT ON COLUMN gao_reports.published IS 'ISO day the product is dated, from its page.';

COMMENT ON COLUMN gao_reports.publicly_released IS 'ISO day it was released to the public, from its page.';

COMMENT ON COLUMN gao_reports.fast_facts IS 'The short version for the public, from its page.';

COMMENT ON COLUMN gao_reports.html_url IS 'Where the full text is, if there is one.';

COMMENT ON COLUMN gao_reports.pdf_url IS 'Where the PDF is.';

CREATE TABLE hearings (
	id TEXT NOT NULL,
	package_id TEXT NOT NULL,
	access_id TEXT NOT NULL,
	title TEXT NOT NULL,
	congress INTEGER,
	session INTEGER,
	chamber TEXT,
	doc_class TEXT,
	type TEXT,
	number TEXT,
	preferred_citation TEXT,
	jacket_id TEXT,
	event_id TEXT,
	heading TEXT,
	part_number TEXT,
	volume_number TEXT,
	fiscalyear TEXT,
	other_hosting_org TEXT,
	date_issued TEXT,
	held_date TEXT,
	held_dates JSONB NOT NULL,
	date_is_placeholder BOOLEAN NOT NULL,
	is_appropriation BOOLEAN,
	is_nomination BOOLEAN,
	is_errata BOOLEAN,
	CONSTRAINT pk_hearings PRIMARY KEY (id),
	CONSTRAINT fk_hearings_id FOREIGN KEY(id) REFERENCES documents (id)
);

CREATE INDEX ix_hearings_package_id ON hearings (package_id);

CREATE INDEX ix_hearings_held_date ON hearings (held_date);

COMMENT ON TABLE hearings IS 'Printed hearings of committees of Congress.';

COMMENT ON COLUMN hearings.id IS 'chrg:<package or granule>';

COMMENT ON COLUMN hearings.package_id IS 'The printed jacket: CHRG-119hhrg58888.';

COMMENT ON COLUMN hearings.access_id IS 'The granule; differs for volumes, parts.';

COMMENT ON COLUMN hearings.title IS 'In capitals, as the cover prints it.';

COMMENT ON COLUMN hearings.congress IS '119.';

COMMENT ON COLUMN hearings.session IS 'Of that Congress: 1 or 2.';

COMMENT ON COLUMN hearings.chamber IS 'HOUSE, SENATE or JOINT.';

COMMENT ON COLUMN hearings.doc_class IS 'HHRG, SHRG or JHRG.';

COMMENT ON COLUMN hearings.type IS 'F field, M markup, O oversight, AU, AP, N nomination, T treaty, G general.';

COMMENT ON COLUMN hearings.number IS 'Of a Senate hearing: 889 of S. Hrg. 117-889.';

COMMENT ON COLUMN hearings.preferred_citation IS 'Serial No. 118-30, S. Hrg. 117-889; serials repeat.';

COMMENT ON COLUMN hearings.jacket_id IS '52-385.';

COMMENT ON COLUMN hearings.event_id IS 'Of the meeting at congress.gov.';

COMMENT ON COLUMN hearings.heading IS 'Part 2, Volume III, Errata.';

COMMENT ON COLUMN hearings.part_number IS '2, 1a.';

COMMENT ON COLUMN hearings.volume_number IS '2.';

COMMENT ON COLUMN hearings.fiscalyear IS 'Of an appropriation.';

COMMENT ON COLUMN hearings.other_hosting_org IS 'Who held it where no committee did.';

COMMENT ON COLUMN hearings.date_issued IS 'Day held, by the publisher; ISO 8601.';

COMMENT ON COLUMN hearings.held_date IS 'First day held, ISO 8601; NULL where it is only a placeholder.';

COMMENT ON COLUMN hearings.held_dates IS 'All days the publisher states.';

COMMENT ON COLUMN hearings.date_is_placeholder IS 'A scan whose day is unknown: the last of its year replaces it.';

COMMENT ON COLUMN hearings.is_appropriation IS 'On money for a fiscal year.';

COMMENT ON COLUMN hearings.is_nomination IS 'On a nomination.';

COMMENT ON COLUMN hearings.is_errata IS 'Corrections to another print.';

CREATE TABLE lda_clients (
	id TEXT NOT NULL,
	client_id INTEGER,
	registrant_ref TEXT,
	registrant_id TEXT,
	url TEXT,
	name TEXT,
	general_description TEXT,
	state TEXT,
	state_display TEXT,
	country TEXT,
	country_display TEXT,
	ppb_state TEXT,
	ppb_state_display TEXT,
	ppb_country TEXT,
	ppb_country_display TEXT,
	effective_date TEXT,
	client_government_entity BOOLEAN,
	client_self_select BOOLEAN,
	contact_name TEXT,
	status INTEGER,
	CONSTRAINT pk_lda_clients PRIMARY KEY (id),
	CONSTRAINT fk_lda_clients_registrant_id FOREIGN KEY(registrant_id) REFERENCES lda_registrants (id)
);

CREATE INDEX ix_lda_clients_registrant_id ON lda_clients (registrant_id);

COMMENT ON TABLE lda_clients IS 'Whom registrants lobby for; a client of two registrants has two rows.';

COMMENT ON COLUMN lda_clients.id IS 'client.id; <registrant>-<client_id> in the quarterly files.';

COMMENT ON COLUMN lda_clients.client_id IS 'The registrant''s number of this client; not unique.';

COMMENT ON COLUMN lda_clients.registrant_ref IS 'Who lobbies for it.';

COMMENT ON COLUMN lda_clients.registrant_id IS 'lda_registrants.id once it is loaded.';

COMMENT ON COLUMN lda_clients.url IS 'Its record in the API.';

COMMENT ON COLUMN lda_clients.name IS 'In capitals, mostly.';

COMMENT ON COLUMN lda_clients.general_description IS 'What it does.';

COMMENT ON COLUMN lda_clients.state IS 'Postal code.';

COMMENT ON COLUMN lda_clients.state_display IS 'Virginia.';

COMMENT ON COLUMN lda_clients.country IS 'ISO code; empty where undetermined.';

COMMENT ON COLUMN lda_clients.country_display IS 'United States of America.';

COMMENT ON COLUMN lda_clients.ppb_state IS 'Of the principal place of business: postal code.';

COMMENT ON COLUMN lda_clients.ppb_state_display IS 'The same in words.';

COMMENT ON COLUMN lda_clients.ppb_country IS 'Of the principal place of business: ISO code.';

COMMENT ON COLUMN lda_clients.ppb_country_display IS 'The same in words.';

COMMENT ON COLUMN lda_clients.effective_date IS 'ISO day its registration took effect.';

COMMENT ON COLUMN lda_clients.client_government_entity IS 'A state or local government.';

COMMENT ON COLUMN lda_clients.client_self_select IS 'The registrant itself.';

COMMENT ON COLUMN lda_clients.contact_name IS 'Whom to ask; in the quarterly files.';

COMMENT ON COLUMN lda_clients.status IS '0 active, 1 ended, 2 ended by the office; quarterly files.';

CREATE TABLE lda_lobbyists (
	id TEXT NOT NULL,
	registrant_ref TEXT,
	registrant_id TEXT,
	prefix TEXT,
	prefix_display TEXT,
	first_name TEXT,
	nickname TEXT,
	middle_name TEXT,
	last_name TEXT,
	suffix TEXT,
	suffix_display TEXT,
	CONSTRAINT pk_lda_lobbyists PRIMARY KEY (id),
	CONSTRAINT fk_lda_lobbyists_registrant_id FOREIGN KEY(registrant_id) REFERENCES lda_registrants (id)
);

CREATE INDEX ix_lda_lobbyists_registrant_id ON lda_lobbyists (registrant_id);

COMMENT ON TABLE lda_lobbyists IS 'People who lobby; a person who changes registrants has two rows.';

COMMENT ON COLUMN lda_lobbyists.id IS 'lobbyist.id.';

COMMENT ON COLUMN lda_lobbyists.registrant_ref IS 'Whom they lobby with.';

COMMENT ON COLUMN lda_lobbyists.registrant_id IS 'lda_registrants.id once it is loaded.';

COMMENT ON COLUMN lda_lobbyists.prefix IS 'mr, dr, …';

COMMENT ON COLUMN lda_lobbyists.prefix_display IS 'MR.';

COMMENT ON COLUMN lda_lobbyists.first_name IS 'In capitals, mostly.';

COMMENT ON COLUMN lda_lobbyists.nickname IS 'What others call them.';

COMMENT ON COLUMN lda_lobbyists.middle_name IS 'Or its initial.';

COMMENT ON COLUMN lda_lobbyists.last_name IS 'In capitals, mostly.';

COMMENT ON COLUMN lda_lobbyists.suffix IS 'jr, esq, …';

COMMENT ON COLUMN lda_lobbyists.suffix_display IS 'JR.';

CREATE TABLE legislators (
	id TEXT NOT NULL,
	bioguide TEXT NOT NULL,
	first TEXT,
	middle TEXT,
	last TEXT,
	suffix TEXT,
	nickname TEXT,
	official_full TEXT,
	birthday TEXT,
	gender TEXT,
	in_office BOOLEAN,
	type TEXT,
	chamber TEXT,
	state TEXT,
	district INTEGER,
	party TEXT,
	caucus TEXT,
	start TEXT,
	end_date TEXT,
	CONSTRAINT pk_legislators PRIMARY KEY (id),
	CONSTRAINT fk_legislators_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT uq_legislators_bioguide UNIQUE (bioguide)
);

CREATE INDEX ix_legislators_state ON legislators (state);

COMMENT ON COLUMN legislators.id IS 'legislator:<bioguide>';

COMMENT ON COLUMN legislators.bioguide IS 'Of the Biographical Directory.';

COMMENT ON COLUMN legislators.first IS 'Given name, at times an initial.';

COMMENT ON COLUMN legislators.middle IS 'Middle name or initial.';

COMMENT ON COLUMN legislators.last IS 'Family name.';

COMMENT ON COLUMN legislators.suffix IS 'Jr., III.';

COMMENT ON COLUMN legislators.nickname IS 'Common alternative to the given name.';

COMMENT ON COLUMN legislators.official_full IS 'Full name as the chamber writes it; since 2012.';

COMMENT ON COLUMN legislators.birthday IS 'ISO 8601.';

COMMENT ON COLUMN legislators.gender IS 'M or F.';

COMMENT ON COLUMN legislators.in_office IS 'Is in the current file; NULL for a loose file.';

COMMENT ON COLUMN legislators.type IS 'Of the latest term: sen or rep.';

COMMENT ON COLUMN legislators.chamber IS 'Of the latest term.';

COMMENT ON COLUMN legislators.state IS 'Of the latest term; USPS abbreviation.';

COMMENT ON COLUMN legislators.district IS 'Of the latest term; 0 at large, -1 unknown.';

COMMENT ON COLUMN legislators.party IS 'Of the latest term.';

COMMENT ON COLUMN legislators.caucus IS 'Of the latest term, for independents.';

COMMENT ON COLUMN legislators.start IS 'First day, ISO 8601.';

COMMENT ON COLUMN legislators.end_date IS 'Upstream `end`: last day, ISO 8601.';

CREATE TABLE subjects (
	vocabulary TEXT NOT NULL,
	top_term TEXT NOT NULL,
	name TEXT NOT NULL,
	ord INTEGER NOT NULL,
	policy_area_ref TEXT,
	policy_area TEXT,
	task_key TEXT,
	CONSTRAINT pk_subjects PRIMARY KEY (vocabulary, top_term, name),
	CONSTRAINT fk_subjects_policy_area FOREIGN KEY(policy_area) REFERENCES policy_areas (name) ON DELETE SET NULL
);

CREATE INDEX ix_subjects_policy_area ON subjects (policy_area);

CREATE INDEX ix_subjects_name ON subjects (name);

COMMENT ON TABLE subjects IS 'Subject terms the Congressional Research Service describes bills by.';

COMMENT ON COLUMN subjects.vocabulary IS 'subjects or names, in use since 2009; liv, the vocabulary until 2008.';

COMMENT ON COLUMN subjects.top_term IS 'The heading the term is listed under.';

COMMENT ON COLUMN subjects.name IS 'The term, as bills state it.';

COMMENT ON COLUMN subjects.ord IS 'Place below its heading, from 1.';

COMMENT ON COLUMN subjects.policy_area_ref IS 'The heading, where it is a policy area.';

COMMENT ON COLUMN subjects.policy_area IS 'policy_areas.name once it is loaded.';

COMMENT ON COLUMN subjects.task_key IS 'The input this row was last loaded from.';

CREATE TABLE embedding_choice (
	id SERIAL NOT NULL,
	generation INTEGER NOT NULL,
	previous INTEGER,
	chosen_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_embedding_choice PRIMARY KEY (id),
	CONSTRAINT ck_embedding_choice_one_row CHECK (id = 1),
	CONSTRAINT fk_embedding_choice_generation FOREIGN KEY(generation) REFERENCES embedding_generations (id),
	CONSTRAINT fk_embedding_choice_previous FOREIGN KEY(previous) REFERENCES embedding_generations (id)
);

COMMENT ON COLUMN embedding_choice.id IS 'Always 1: there is one choice.';

COMMENT ON COLUMN embedding_choice.previous IS 'What a rollback takes.';

CREATE TABLE embedding_batches (
	id SERIAL NOT NULL,
	run_id UUID NOT NULL,
	generation INTEGER NOT NULL,
	texts INTEGER NOT NULL,
	tokens INTEGER NOT NULL,
	requests INTEGER NOT NULL,
	retries INTEGER NOT NULL,
	cost FLOAT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_embedding_batches PRIMARY KEY (id),
	CONSTRAINT fk_embedding_batches_generation FOREIGN KEY(generation) REFERENCES embedding_generations (id)
);

CREATE INDEX ix_embedding_batches_generation ON embedding_batches (generation);

COMMENT ON COLUMN embedding_batches.run_id IS 'One call of `fonds embed`.';

COMMENT ON COLUMN embedding_batches.requests IS 'Retries included.';

COMMENT ON COLUMN embedding_batches.cost IS 'USD';

CREATE TABLE upload_events (
	id SERIAL NOT NULL,
	job_id UUID NOT NULL,
	from_status TEXT,
	to_status TEXT NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	by TEXT NOT NULL,
	why TEXT NOT NULL,
	CONSTRAINT pk_upload_events PRIMARY KEY (id),
	CONSTRAINT fk_upload_events_job_id FOREIGN KEY(job_id) REFERENCES upload_jobs (job_id) ON DELETE CASCADE
);

CREATE INDEX ix_upload_events_job_id ON upload_events (job_id, id);

COMMENT ON COLUMN upload_events.from_status IS 'NULL: the job began.';

CREATE TABLE upload_errors (
	id SERIAL NOT NULL,
	job_id UUID NOT NULL,
	stage TEXT NOT NULL,
	type TEXT NOT NULL,
	message TEXT NOT NULL,
	is_final BOOLEAN NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_upload_errors PRIMARY KEY (id),
	CONSTRAINT fk_upload_errors_job_id FOREIGN KEY(job_id) REFERENCES upload_jobs (job_id) ON DELETE CASCADE
);

CREATE INDEX ix_upload_errors_job_id ON upload_errors (job_id);

COMMENT ON COLUMN upload_errors.stage IS 'parse, chunking, embedding';

COMMENT ON COLUMN upload_errors.type IS 'Name of the error, to group by.';

COMMENT ON COLUMN upload_errors.is_final IS 'Whether the job failed by it.';

CREATE TABLE bills (
	id TEXT NOT NULL,
	congress INTEGER NOT NULL,
	type TEXT NOT NULL,
	number INTEGER NOT NULL,
	title TEXT NOT NULL,
	origin_chamber TEXT,
	introduced_date TEXT,
	policy_area TEXT,
	sponsor_ref TEXT,
	sponsor_id TEXT,
	latest_action_date TEXT,
	latest_action_time TEXT,
	latest_action_text TEXT,
	constitutional_authority_statement_text TEXT,
	create_date TEXT,
	update_date TEXT,
	update_date_including_text TEXT,
	version TEXT,
	notes JSONB,
	calendar_numbers JSONB,
	CONSTRAINT pk_bills PRIMARY KEY (id),
	CONSTRAINT fk_bills_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT fk_bills_sponsor_id FOREIGN KEY(sponsor_id) REFERENCES legislators (id)
);

CREATE UNIQUE INDEX ix_bills_congress_type_number ON bills (congress, type, number);

CREATE INDEX ix_bills_sponsor_id ON bills (sponsor_id);

CREATE INDEX ix_bills_policy_area ON bills (policy_area);

CREATE INDEX ix_bills_introduced_date ON bills (introduced_date);

COMMENT ON TABLE bills IS 'Bills and resolutions of Congress, 108th Congress on.';

COMMENT ON COLUMN bills.id IS 'bill:119-hr-1, documents.id.';

COMMENT ON COLUMN bills.congress IS '119.';

COMMENT ON COLUMN bills.type IS 'HR, S, HJRES, SJRES, HCONRES, …, SRES.';

COMMENT ON COLUMN bills.number IS 'Within its Congress and type.';

COMMENT ON COLUMN bills.title IS 'The display title.';

COMMENT ON COLUMN bills.origin_chamber IS 'House or Senate.';

COMMENT ON COLUMN bills.introduced_date IS 'ISO date.';

COMMENT ON COLUMN bills.policy_area IS 'The one policy area the Congressional Research Service assigns.';

COMMENT ON COLUMN bills.sponsor_ref IS 'The first sponsor: legislator:C000127.';

COMMENT ON COLUMN bills.sponsor_id IS 'legislators.id once it is loaded.';

COMMENT ON COLUMN bills.latest_action_date IS 'ISO date.';

COMMENT ON COLUMN bills.latest_action_time IS '24 hours, Eastern time.';

COMMENT ON COLUMN bills.latest_action_text IS 'What happened last.';

COMMENT ON COLUMN bills.constitutional_authority_statement_text IS 'As printed in the Congressional Record.';

COMMENT ON COLUMN bills.create_date IS 'When the publisher''s record was made, ISO moment.';

COMMENT ON COLUMN bills.update_date IS 'When anything but the list of texts changed, ISO moment.';

COMMENT ON COLUMN bills.update_date_including_text IS 'When anything changed, ISO moment.';

COMMENT ON COLUMN bills.version IS 'Of the file format: 3.0.0; NULL in 2016.';

COMMENT ON COLUMN bills.notes IS 'Texts of the publisher''s notes.';

COMMENT ON COLUMN bills.calendar_numbers IS 'Calendars it was placed on: [{calendar, number}].';

CREATE TABLE committee_names (
	committee_id TEXT NOT NULL,
	congress INTEGER NOT NULL,
	name TEXT NOT NULL,
	CONSTRAINT pk_committee_names PRIMARY KEY (committee_id, congress),
	CONSTRAINT fk_committee_names_committee_id FOREIGN KEY(committee_id) REFERENCES committees (id) ON DELETE CASCADE
);

COMMENT ON COLUMN committee_names.committee_id IS 'committees.id';

COMMENT ON COLUMN committee_names.congress IS 'In which it was called so.';

COMMENT ON COLUMN committee_names.name IS 'As THOMAS had it; not always the official one.';

CREATE TABLE committee_congresses (
	committee_id TEXT NOT NULL,
	congress INTEGER NOT NULL,
	CONSTRAINT pk_committee_congresses PRIMARY KEY (committee_id, congress),
	CONSTRAINT fk_committee_congresses_committee_id FOREIGN KEY(committee_id) REFERENCES committees (id) ON DELETE CASCADE
);

COMMENT ON COLUMN committee_congresses.committee_id IS 'committees.id';

COMMENT ON COLUMN committee_congresses.congress IS 'In which bills were referred to it.';

CREATE TABLE committee_members (
	committee_ref TEXT NOT NULL,
	committee_id TEXT,
	bioguide TEXT NOT NULL,
	legislator_ref TEXT,
	legislator_id TEXT,
	ord INTEGER NOT NULL,
	name TEXT,
	party TEXT,
	rank INTEGER,
	title TEXT,
	chamber TEXT,
	start_date TEXT,
	source TEXT,
	task_key TEXT,
	CONSTRAINT pk_committee_members PRIMARY KEY (committee_ref, bioguide),
	CONSTRAINT fk_committee_members_committee_id FOREIGN KEY(committee_id) REFERENCES committees (id),
	CONSTRAINT fk_committee_members_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id)
);

CREATE INDEX ix_committee_members_committee_id ON committee_members (committee_id);

CREATE INDEX ix_committee_members_legislator_id ON committee_members (legislator_id);

COMMENT ON COLUMN committee_members.committee_ref IS 'committee:<code>';

COMMENT ON COLUMN committee_members.committee_id IS 'committees.id once it is loaded.';

COMMENT ON COLUMN committee_members.bioguide IS 'Of the Biographical Directory.';

COMMENT ON COLUMN committee_members.legislator_ref IS 'legislator:<bioguide>';

COMMENT ON COLUMN committee_members.legislator_id IS 'legislators.id once it is loaded.';

COMMENT ON COLUMN committee_members.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN committee_members.name IS 'As listed, for reading only.';

COMMENT ON COLUMN committee_members.party IS 'majority or minority.';

COMMENT ON COLUMN committee_members.rank IS 'Within the party''s side.';

COMMENT ON COLUMN committee_members.title IS 'Chairman, Ranking Member, Ex Officio …';

COMMENT ON COLUMN committee_members.chamber IS 'senate or house, on joint committees.';

COMMENT ON COLUMN committee_members.start_date IS 'First day, ISO 8601, where known.';

COMMENT ON COLUMN committee_members.source IS 'Where the assignment was announced, where known.';

COMMENT ON COLUMN committee_members.task_key IS 'The input this row was last loaded from.';

CREATE TABLE crec_speakers (
	granule_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	legislator_ref TEXT,
	legislator_id TEXT,
	name TEXT NOT NULL,
	bioguide TEXT,
	parsed TEXT,
	role TEXT,
	chamber TEXT,
	party TEXT,
	state TEXT,
	CONSTRAINT pk_crec_speakers PRIMARY KEY (granule_id, ord),
	CONSTRAINT fk_crec_speakers_granule_id FOREIGN KEY(granule_id) REFERENCES crec_granules (id) ON DELETE CASCADE,
	CONSTRAINT fk_crec_speakers_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id)
);

CREATE INDEX ix_crec_speakers_legislator_id ON crec_speakers (legislator_id);

COMMENT ON TABLE crec_speakers IS 'Members who speak in a granule.';

COMMENT ON COLUMN crec_speakers.granule_id IS 'crec_granules.id';

COMMENT ON COLUMN crec_speakers.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN crec_speakers.legislator_ref IS 'legislator:<bioguide>';

COMMENT ON COLUMN crec_speakers.legislator_id IS 'legislators.id once it is loaded.';

COMMENT ON COLUMN crec_speakers.name IS 'First name first.';

COMMENT ON COLUMN crec_speakers.bioguide IS 'Of the Biographical Directory.';

COMMENT ON COLUMN crec_speakers.parsed IS 'As printed: Mr. SMITH of Texas.';

COMMENT ON COLUMN crec_speakers.role IS 'SPEAKING, or RECAPPED in the digest.';

COMMENT ON COLUMN crec_speakers.chamber IS 'H or S.';

COMMENT ON COLUMN crec_speakers.party IS 'D, R, I.';

COMMENT ON COLUMN crec_speakers.state IS 'Postal code.';

CREATE TABLE crs_versions (
	report_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	title TEXT NOT NULL,
	version_id TEXT,
	date TEXT,
	retrieved TEXT,
	source TEXT,
	source_link TEXT,
	summary TEXT,
	html TEXT,
	pdf TEXT,
	html_sha1 TEXT,
	pdf_sha1 TEXT,
	CONSTRAINT pk_crs_versions PRIMARY KEY (report_id, ord),
	CONSTRAINT fk_crs_versions_report_id FOREIGN KEY(report_id) REFERENCES crs_reports (id) ON DELETE CASCADE
);

COMMENT ON TABLE crs_versions IS 'Every version of a report that is known.';

COMMENT ON COLUMN crs_versions.report_id IS 'crs_reports.id';

COMMENT ON COLUMN crs_versions.ord IS 'Place in the publisher''s list, the newest first.';

COMMENT ON COLUMN crs_versions.title IS 'As this version has it.';

COMMENT ON COLUMN crs_versions.version_id IS 'The version''s own id, or its number.';

COMMENT ON COLUMN crs_versions.date IS 'ISO day on its cover.';

COMMENT ON COLUMN crs_versions.retrieved IS 'ISO moment at which EveryCRSReport.com found it; no zone is stated.';

COMMENT ON COLUMN crs_versions.source IS 'Where EveryCRSReport.com has it from.';

COMMENT ON COLUMN crs_versions.source_link IS 'Its page there.';

COMMENT ON COLUMN crs_versions.summary IS 'As plain text.';

COMMENT ON COLUMN crs_versions.html IS 'Path or address of its HTML.';

COMMENT ON COLUMN crs_versions.pdf IS 'Path or address of its PDF.';

COMMENT ON COLUMN crs_versions.html_sha1 IS 'SHA-1 of the HTML as CRS served it.';

COMMENT ON COLUMN crs_versions.pdf_sha1 IS 'SHA-1 of the PDF as CRS served it.';

CREATE TABLE crs_topics (
	report_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	name TEXT NOT NULL,
	source TEXT,
	topic_id TEXT,
	CONSTRAINT pk_crs_topics PRIMARY KEY (report_id, ord),
	CONSTRAINT fk_crs_topics_report_id FOREIGN KEY(report_id) REFERENCES crs_reports (id) ON DELETE CASCADE
);

COMMENT ON TABLE crs_topics IS 'What the newest version of a report is about.';

COMMENT ON COLUMN crs_topics.report_id IS 'crs_reports.id';

COMMENT ON COLUMN crs_topics.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN crs_topics.name IS 'The topic.';

COMMENT ON COLUMN crs_topics.source IS 'Whose topic it is: IBCList, CongOpsList, EveryCRSReport.com, congress.gov, …';

COMMENT ON COLUMN crs_topics.topic_id IS 'Its id in that list.';

CREATE TABLE fr_document_agencies (
	document_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	raw_name TEXT,
	name TEXT,
	slug TEXT,
	agency_ref INTEGER,
	agency_id INTEGER,
	CONSTRAINT pk_fr_document_agencies PRIMARY KEY (document_id, ord),
	CONSTRAINT fk_fr_document_agencies_document_id FOREIGN KEY(document_id) REFERENCES fr_documents (id),
	CONSTRAINT fk_fr_document_agencies_agency_id FOREIGN KEY(agency_id) REFERENCES agencies (id) ON DELETE SET NULL
);

CREATE INDEX ix_fr_document_agencies_agency_id ON fr_document_agencies (agency_id);

COMMENT ON TABLE fr_document_agencies IS 'Issuing agencies, in the order of the document.';

COMMENT ON COLUMN fr_document_agencies.document_id IS 'fr_documents.id.';

COMMENT ON COLUMN fr_document_agencies.ord IS 'Place in the upstream''s list, from 0.';

COMMENT ON COLUMN fr_document_agencies.raw_name IS 'As printed in the document.';

COMMENT ON COLUMN fr_document_agencies.name IS 'As the Federal Register calls it; NULL for a name it does not know.';

COMMENT ON COLUMN fr_document_agencies.slug IS 'The name in addresses.';

COMMENT ON COLUMN fr_document_agencies.agency_ref IS 'Id as upstream states it.';

COMMENT ON COLUMN fr_document_agencies.agency_id IS 'The agency, once it is loaded.';

CREATE TABLE fr_document_cfr_references (
	document_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	title INTEGER,
	part TEXT,
	chapter TEXT,
	citation_url TEXT,
	CONSTRAINT pk_fr_document_cfr_references PRIMARY KEY (document_id, ord),
	CONSTRAINT fk_fr_document_cfr_references_document_id FOREIGN KEY(document_id) REFERENCES fr_documents (id)
);

CREATE INDEX ix_fr_document_cfr_references_part ON fr_document_cfr_references (part);

COMMENT ON TABLE fr_document_cfr_references IS 'Parts of the Code of Federal Regulations a document concerns.';

COMMENT ON COLUMN fr_document_cfr_references.document_id IS 'fr_documents.id.';

COMMENT ON COLUMN fr_document_cfr_references.ord IS 'Place in the upstream''s list, from 0.';

COMMENT ON COLUMN fr_document_cfr_references.title IS 'Title of the Code.';

COMMENT ON COLUMN fr_document_cfr_references.part IS 'Part; NULL when a chapter is meant.';

COMMENT ON COLUMN fr_document_cfr_references.chapter IS 'Chapter, where it is named instead of a part.';

COMMENT ON COLUMN fr_document_cfr_references.citation_url IS 'The part on the web.';

CREATE TABLE fr_document_dockets (
	document_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	docket_id TEXT NOT NULL,
	CONSTRAINT pk_fr_document_dockets PRIMARY KEY (document_id, ord),
	CONSTRAINT fk_fr_document_dockets_document_id FOREIGN KEY(document_id) REFERENCES fr_documents (id)
);

CREATE INDEX ix_fr_document_dockets_docket_id ON fr_document_dockets (docket_id);

COMMENT ON TABLE fr_document_dockets IS 'Dockets a document belongs to.';

COMMENT ON COLUMN fr_document_dockets.document_id IS 'fr_documents.id.';

COMMENT ON COLUMN fr_document_dockets.ord IS 'Place in the upstream''s list, from 0.';

COMMENT ON COLUMN fr_document_dockets.docket_id IS 'As the agency writes it.';

CREATE TABLE fr_document_rins (
	document_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	regulation_id_number TEXT NOT NULL,
	CONSTRAINT pk_fr_document_rins PRIMARY KEY (document_id, ord),
	CONSTRAINT fk_fr_document_rins_document_id FOREIGN KEY(document_id) REFERENCES fr_documents (id)
);

CREATE INDEX ix_fr_document_rins_regulation_id_number ON fr_document_rins (regulation_id_number);

COMMENT ON TABLE fr_document_rins IS 'Regulation identifier numbers of a document.';

COMMENT ON COLUMN fr_document_rins.document_id IS 'fr_documents.id.';

COMMENT ON COLUMN fr_document_rins.ord IS 'Place in the upstream''s list, from 0.';

COMMENT ON COLUMN fr_document_rins.regulation_id_number IS '3170-AA50.';

CREATE TABLE fr_document_topics (
	document_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	topic TEXT NOT NULL,
	CONSTRAINT pk_fr_document_topics PRIMARY KEY (document_id, ord),
	CONSTRAINT fk_fr_document_topics_document_id FOREIGN KEY(document_id) REFERENCES fr_documents (id)
);

CREATE INDEX ix_fr_document_topics_topic ON fr_document_topics (topic);

COMMENT ON TABLE fr_document_topics IS 'Subjects from the Federal Register''s thesaurus.';

COMMENT ON COLUMN fr_document_topics.document_id IS 'fr_documents.id.';

COMMENT ON COLUMN fr_document_topics.ord IS 'Place in the upstream''s list, from 0.';

COMMENT ON COLUMN fr_document_topics.topic IS 'As upstream.';

CREATE TABLE gao_topics (
	report_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	topic TEXT NOT NULL,
	CONSTRAINT pk_gao_topics PRIMARY KEY (report_id, ord),
	CONSTRAINT fk_gao_topics_report_id FOREIGN KEY(report_id) REFERENCES gao_reports (id) ON DELETE CASCADE
);

COMMENT ON TABLE gao_topics IS 'What a product is about, from its page and the feed''s categories.';

COMMENT ON COLUMN gao_topics.report_id IS 'gao_reports.id';

COMMENT ON COLUMN gao_topics.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN gao_topics.topic IS 'Topic or subject term, as GAO words it.';

CREATE TABLE gao_recommendations (
	report_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	agency TEXT,
	recommendation TEXT,
	status TEXT,
	comments TEXT,
	CONSTRAINT pk_gao_recommendations PRIMARY KEY (report_id, ord),
	CONSTRAINT fk_gao_recommendations_report_id FOREIGN KEY(report_id) REFERENCES gao_reports (id) ON DELETE CASCADE
);

COMMENT ON TABLE gao_recommendations IS 'Recommendations of a product and what became of them, from its page.';

COMMENT ON COLUMN gao_recommendations.report_id IS 'gao_reports.id';

COMMENT ON COLUMN gao_recommendations.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN gao_recommendations.agency IS 'The agency it is addressed to.';

COMMENT ON COLUMN gao_recommendations.recommendation IS 'What GAO recommends.';

COMMENT ON COLUMN gao_recommendations.status IS 'Open, Closed – Implemented, …';

COMMENT ON COLUMN gao_recommendations.comments IS 'What GAO says on its status.';

CREATE TABLE hearing_witnesses (
	hearing_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	witness TEXT NOT NULL,
	CONSTRAINT pk_hearing_witnesses PRIMARY KEY (hearing_id, ord),
	CONSTRAINT fk_hearing_witnesses_hearing_id FOREIGN KEY(hearing_id) REFERENCES hearings (id) ON DELETE CASCADE
);

COMMENT ON TABLE hearing_witnesses IS 'Who testified, as the cover lists them.';

COMMENT ON COLUMN hearing_witnesses.hearing_id IS 'hearings.id';

COMMENT ON COLUMN hearing_witnesses.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN hearing_witnesses.witness IS 'The whole line: name, office, organisation.';

CREATE TABLE hearing_committees (
	hearing_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	committee_ref TEXT,
	committee_id TEXT,
	name TEXT NOT NULL,
	authority_id TEXT,
	short_name TEXT,
	chamber TEXT,
	type TEXT,
	subcommittees JSONB NOT NULL,
	CONSTRAINT pk_hearing_committees PRIMARY KEY (hearing_id, ord),
	CONSTRAINT fk_hearing_committees_hearing_id FOREIGN KEY(hearing_id) REFERENCES hearings (id) ON DELETE CASCADE,
	CONSTRAINT fk_hearing_committees_committee_id FOREIGN KEY(committee_id) REFERENCES committees (id)
);

CREATE INDEX ix_hearing_committees_committee_id ON hearing_committees (committee_id);

COMMENT ON TABLE hearing_committees IS 'Committees that held a hearing.';

COMMENT ON COLUMN hearing_committees.hearing_id IS 'hearings.id';

COMMENT ON COLUMN hearing_committees.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN hearing_committees.committee_ref IS 'committee:<code>';

COMMENT ON COLUMN hearing_committees.committee_id IS 'committees.id once it is loaded.';

COMMENT ON COLUMN hearing_committees.name IS 'Committee on Natural Resources.';

COMMENT ON COLUMN hearing_committees.authority_id IS 'hsii00; NULL for a committee the authority file does not know.';

COMMENT ON COLUMN hearing_committees.short_name IS 'Natural Resources.';

COMMENT ON COLUMN hearing_committees.chamber IS 'H, S or J.';

COMMENT ON COLUMN hearing_committees.type IS 'S standing, L select, P special, J joint, T task force, O other.';

COMMENT ON COLUMN hearing_committees.subcommittees IS 'Names of those that sat.';

CREATE TABLE hearing_members (
	hearing_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	legislator_ref TEXT,
	legislator_id TEXT,
	name TEXT NOT NULL,
	bioguide TEXT,
	parsed TEXT,
	role TEXT,
	chamber TEXT,
	party TEXT,
	state TEXT,
	CONSTRAINT pk_hearing_members PRIMARY KEY (hearing_id, ord),
	CONSTRAINT fk_hearing_members_hearing_id FOREIGN KEY(hearing_id) REFERENCES hearings (id) ON DELETE CASCADE,
	CONSTRAINT fk_hearing_members_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id)
);

CREATE INDEX ix_hearing_members_legislator_id ON hearing_members (legislator_id);

COMMENT ON TABLE hearing_members IS 'Members of the committees, as the hearing lists them.';

COMMENT ON COLUMN hearing_members.hearing_id IS 'hearings.id';

COMMENT ON COLUMN hearing_members.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN hearing_members.legislator_ref IS 'legislator:<bioguide>';

COMMENT ON COLUMN hearing_members.legislator_id IS 'legislators.id once it is loaded.';

COMMENT ON COLUMN hearing_members.name IS 'First name first.';

COMMENT ON COLUMN hearing_members.bioguide IS 'Of the Biographical Directory.';

COMMENT ON COLUMN hearing_members.parsed IS 'As printed.';

COMMENT ON COLUMN hearing_members.role IS 'COMMMEMBER.';

COMMENT ON COLUMN hearing_members.chamber IS 'H or S.';

COMMENT ON COLUMN hearing_members.party IS 'D, R, I.';

COMMENT ON COLUMN hearing_members.state IS 'Postal code.';

CREATE TABLE lda_filings (
	id TEXT NOT NULL,
	filing_uuid TEXT NOT NULL,
	filing_year INTEGER,
	filing_type TEXT,
	filing_type_display TEXT,
	filing_period TEXT,
	filing_period_display TEXT,
	filing_document_url TEXT,
	filing_document_content_type TEXT,
	expenses_method TEXT,
	expenses_method_display TEXT,
	posted_by_name TEXT,
	dt_posted TEXT,
	termination_date TEXT,
	registrant_country TEXT,
	registrant_ppb_country TEXT,
	registrant_address_1 TEXT,
	registrant_address_2 TEXT,
	registrant_city TEXT,
	registrant_state TEXT,
	registrant_zip TEXT,
	income NUMERIC(16, 2),
	expenses NUMERIC(16, 2),
	amount NUMERIC(16, 2),
	registrant_different_address BOOLEAN,
	registrant_ref TEXT,
	registrant_id TEXT,
	registrant_name TEXT,
	client_ref TEXT,
	client_id TEXT,
	client_name TEXT,
	affiliated_orgs_url TEXT,
	CONSTRAINT pk_lda_filings PRIMARY KEY (id),
	CONSTRAINT fk_lda_filings_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT fk_lda_filings_registrant_id FOREIGN KEY(registrant_id) REFERENCES lda_registrants (id),
	CONSTRAINT fk_lda_filings_client_id FOREIGN KEY(client_id) REFERENCES lda_clients (id)
);

CREATE INDEX ix_lda_filings_registrant_id_registrant_ref ON lda_filings (registrant_id, registrant_ref);

CREATE INDEX ix_lda_filings_dt_posted ON lda_filings (dt_posted);

CREATE INDEX ix_lda_filings_client_id_client_ref ON lda_filings (client_id, client_ref);

COMMENT ON TABLE lda_filings IS 'Registrations and reports under the Lobbying Disclosure Act.';

COMMENT ON COLUMN lda_filings.id IS 'lda:<filing_uuid>';

COMMENT ON COLUMN lda_filings.filing_uuid IS 'An amendment has one of its own.';

COMMENT ON COLUMN lda_filings.filing_year IS 'The year reported on.';

COMMENT ON COLUMN lda_filings.filing_type IS 'RR, RA, Q1, Q1Y, 1T, 1A, 1@, …, MM, YY.';

COMMENT ON COLUMN lda_filings.filing_type_display IS '3rd Quarter - Report.';

COMMENT ON COLUMN lda_filings.filing_period IS 'third_quarter, mid_year, …; of a registration, the one it was made in.';

COMMENT ON COLUMN lda_filings.filing_period_display IS '3rd Quarter (July 1 - Sep 30).';

COMMENT ON COLUMN lda_filings.filing_document_url IS 'The filing itself.';

COMMENT ON COLUMN lda_filings.filing_document_content_type IS 'text/html, or application/pdf for a scan.';

COMMENT ON COLUMN lda_filings.expenses_method IS 'a, b or c: how expenses were counted.';

COMMENT ON COLUMN lda_filings.expenses_method_display IS 'The same in words.';

COMMENT ON COLUMN lda_filings.posted_by_name IS 'Who filed it.';

COMMENT ON COLUMN lda_filings.dt_posted IS 'When, ISO 8601; as early as 1905 for filings of 1999.';

COMMENT ON COLUMN lda_filings.termination_date IS 'ISO day the lobbying ended.';

COMMENT ON COLUMN lda_filings.registrant_country IS 'The registrant''s, as the filing states it.';

COMMENT ON COLUMN lda_filings.registrant_ppb_country IS 'Of its principal place of business, as the filing states it.';

COMMENT ON COLUMN lda_filings.registrant_address_1 IS 'As the filing states it.';

COMMENT ON COLUMN lda_filings.registrant_address_2 IS 'As the filing states it.';

COMMENT ON COLUMN lda_filings.registrant_city IS 'As the filing states it.';

COMMENT ON COLUMN lda_filings.registrant_state IS 'As the filing states it.';

COMMENT ON COLUMN lda_filings.registrant_zip IS 'As the filing states it.';

COMMENT ON COLUMN lda_filings.income IS 'US dollars, of a lobbying firm from this client.';

COMMENT ON COLUMN lda_filings.expenses IS 'US dollars, of an organization with lobbyists of its own.';

COMMENT ON COLUMN lda_filings.amount IS 'Income or expenses; the quarterly files do not say which.';

COMMENT ON COLUMN lda_filings.registrant_different_address IS 'Than in its registration.';

COMMENT ON COLUMN lda_filings.registrant_ref IS 'Who filed it.';

COMMENT ON COLUMN lda_filings.registrant_id IS 'lda_registrants.id once it is loaded.';

COMMENT ON COLUMN lda_filings.registrant_name IS 'As published with this filing.';

COMMENT ON COLUMN lda_filings.client_ref IS 'Whom it lobbied for.';

COMMENT ON COLUMN lda_filings.client_id IS 'lda_clients.id once it is loaded.';

COMMENT ON COLUMN lda_filings.client_name IS 'As published with this filing.';

COMMENT ON COLUMN lda_filings.affiliated_orgs_url IS 'Where they are listed; quarterly files.';

CREATE TABLE legislator_ids (
	legislator_id TEXT NOT NULL,
	scheme TEXT NOT NULL,
	ord INTEGER NOT NULL,
	value TEXT NOT NULL,
	CONSTRAINT pk_legislator_ids PRIMARY KEY (legislator_id, scheme, ord),
	CONSTRAINT fk_legislator_ids_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id) ON DELETE CASCADE
);

CREATE INDEX ix_legislator_ids_scheme_value ON legislator_ids (scheme, value);

COMMENT ON COLUMN legislator_ids.legislator_id IS 'legislators.id';

COMMENT ON COLUMN legislator_ids.scheme IS 'thomas, lis, govtrack, fec …';

COMMENT ON COLUMN legislator_ids.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN legislator_ids.value IS 'As published, leading zeros included.';

CREATE TABLE legislator_terms (
	legislator_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	type TEXT NOT NULL,
	start TEXT,
	end_date TEXT,
	end_type TEXT,
	district INTEGER,
	class INTEGER,
	state TEXT,
	state_rank TEXT,
	party TEXT,
	caucus TEXT,
	url TEXT,
	address TEXT,
	phone TEXT,
	fax TEXT,
	contact_form TEXT,
	office TEXT,
	rss_url TEXT,
	how TEXT,
	CONSTRAINT pk_legislator_terms PRIMARY KEY (legislator_id, ord),
	CONSTRAINT fk_legislator_terms_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id) ON DELETE CASCADE
);

COMMENT ON COLUMN legislator_terms.legislator_id IS 'legislators.id';

COMMENT ON COLUMN legislator_terms.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN legislator_terms.type IS 'sen or rep.';

COMMENT ON COLUMN legislator_terms.start IS 'First day, ISO 8601.';

COMMENT ON COLUMN legislator_terms.end_date IS 'Upstream `end`: last day, ISO 8601.';

COMMENT ON COLUMN legislator_terms.end_type IS 'Upstream `end-type`: why an appointment ends early.';

COMMENT ON COLUMN legislator_terms.district IS '0 at large, -1 unknown.';

COMMENT ON COLUMN legislator_terms.class IS 'Election class of a senator.';

COMMENT ON COLUMN legislator_terms.state IS 'USPS abbreviation; DK, OL and PI are former territories.';

COMMENT ON COLUMN legislator_terms.state_rank IS 'junior or senior, for senators.';

COMMENT ON COLUMN legislator_terms.party IS 'The last one held during the term.';

COMMENT ON COLUMN legislator_terms.caucus IS 'Party an independent sits with.';

COMMENT ON COLUMN legislator_terms.url IS 'Official website.';

COMMENT ON COLUMN legislator_terms.address IS 'Washington office.';

COMMENT ON COLUMN legislator_terms.phone IS 'Washington office.';

COMMENT ON COLUMN legislator_terms.fax IS 'Washington office.';

COMMENT ON COLUMN legislator_terms.contact_form IS 'Address of the contact page.';

COMMENT ON COLUMN legislator_terms.office IS 'Room and building.';

COMMENT ON COLUMN legislator_terms.rss_url IS 'Feed of the official website.';

COMMENT ON COLUMN legislator_terms.how IS 'appointment or special-election, where not a regular election.';

CREATE TABLE legislator_party_affiliations (
	legislator_id TEXT NOT NULL,
	term_ord INTEGER NOT NULL,
	ord INTEGER NOT NULL,
	start TEXT,
	end_date TEXT,
	party TEXT,
	caucus TEXT,
	CONSTRAINT pk_legislator_party_affiliations PRIMARY KEY (legislator_id, term_ord, ord),
	CONSTRAINT fk_legislator_party_affiliations_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id) ON DELETE CASCADE
);

COMMENT ON COLUMN legislator_party_affiliations.legislator_id IS 'legislators.id';

COMMENT ON COLUMN legislator_party_affiliations.term_ord IS 'legislator_terms.ord';

COMMENT ON COLUMN legislator_party_affiliations.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN legislator_party_affiliations.start IS 'First day, ISO 8601.';

COMMENT ON COLUMN legislator_party_affiliations.end_date IS 'Upstream `end`: last day, ISO 8601.';

COMMENT ON COLUMN legislator_party_affiliations.party IS 'Held in these days.';

COMMENT ON COLUMN legislator_party_affiliations.caucus IS 'Party an independent sat with.';

CREATE TABLE legislator_other_names (
	legislator_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	first TEXT,
	middle TEXT,
	last TEXT,
	suffix TEXT,
	nickname TEXT,
	start TEXT,
	end_date TEXT,
	CONSTRAINT pk_legislator_other_names PRIMARY KEY (legislator_id, ord),
	CONSTRAINT fk_legislator_other_names_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id) ON DELETE CASCADE
);

COMMENT ON COLUMN legislator_other_names.legislator_id IS 'legislators.id';

COMMENT ON COLUMN legislator_other_names.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN legislator_other_names.first IS 'If it differed.';

COMMENT ON COLUMN legislator_other_names.middle IS 'If it differed.';

COMMENT ON COLUMN legislator_other_names.last IS 'If it differed.';

COMMENT ON COLUMN legislator_other_names.suffix IS 'If it differed.';

COMMENT ON COLUMN legislator_other_names.nickname IS 'If it differed.';

COMMENT ON COLUMN legislator_other_names.start IS 'First day, ISO 8601.';

COMMENT ON COLUMN legislator_other_names.end_date IS 'Upstream `end`: last day, ISO 8601.';

CREATE TABLE legislator_leadership_roles (
	legislator_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	title TEXT,
	chamber TEXT,
	start TEXT,
	end_date TEXT,
	CONSTRAINT pk_legislator_leadership_roles PRIMARY KEY (legislator_id, ord),
	CONSTRAINT fk_legislator_leadership_roles_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id) ON DELETE CASCADE
);

COMMENT ON COLUMN legislator_leadership_roles.legislator_id IS 'legislators.id';

COMMENT ON COLUMN legislator_leadership_roles.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN legislator_leadership_roles.title IS 'Majority Leader, Speaker …';

COMMENT ON COLUMN legislator_leadership_roles.chamber IS 'senate or house.';

COMMENT ON COLUMN legislator_leadership_roles.start IS 'First day, ISO 8601.';

COMMENT ON COLUMN legislator_leadership_roles.end_date IS 'Upstream `end`: last day, ISO 8601.';

CREATE TABLE legislator_family (
	legislator_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	name TEXT,
	relation TEXT,
	CONSTRAINT pk_legislator_family PRIMARY KEY (legislator_id, ord),
	CONSTRAINT fk_legislator_family_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id) ON DELETE CASCADE
);

COMMENT ON COLUMN legislator_family.legislator_id IS 'legislators.id';

COMMENT ON COLUMN legislator_family.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN legislator_family.name IS 'The relative.';

COMMENT ON COLUMN legislator_family.relation IS 'What the legislator is to that relative: son …';

CREATE TABLE legislator_social_media (
	legislator_ref TEXT NOT NULL,
	legislator_id TEXT,
	twitter TEXT,
	twitter_id TEXT,
	facebook TEXT,
	facebook_id TEXT,
	youtube TEXT,
	youtube_id TEXT,
	instagram TEXT,
	instagram_id TEXT,
	mastodon TEXT,
	task_key TEXT,
	CONSTRAINT pk_legislator_social_media PRIMARY KEY (legislator_ref),
	CONSTRAINT fk_legislator_social_media_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id)
);

CREATE INDEX ix_legislator_social_media_legislator_id ON legislator_social_media (legislator_id);

COMMENT ON COLUMN legislator_social_media.legislator_ref IS 'legislator:<bioguide>, whether that person is loaded or not.';

COMMENT ON COLUMN legislator_social_media.legislator_id IS 'legislators.id once it is loaded.';

COMMENT ON COLUMN legislator_social_media.twitter IS 'Official account; handle or numeric id.';

COMMENT ON COLUMN legislator_social_media.twitter_id IS 'Official account; handle or numeric id.';

COMMENT ON COLUMN legislator_social_media.facebook IS 'Official account; handle or numeric id.';

COMMENT ON COLUMN legislator_social_media.facebook_id IS 'Official account; handle or numeric id.';

COMMENT ON COLUMN legislator_social_media.youtube IS 'Official account; handle or numeric id.';

COMMENT ON COLUMN legislator_social_media.youtube_id IS 'Official account; handle or numeric id.';

COMMENT ON COLUMN legislator_social_media.instagram IS 'Official account; handle or numeric id.';

COMMENT ON COLUMN legislator_social_media.instagram_id IS 'Official account; handle or numeric id.';

COMMENT ON COLUMN legislator_social_media.mastodon IS 'Official account; handle or numeric id.';

COMMENT ON COLUMN legislator_social_media.task_key IS 'The input this row was last loaded from.';

CREATE TABLE legislator_offices (
	id TEXT NOT NULL,
	legislator_ref TEXT,
	legislator_id TEXT,
	address TEXT,
	suite TEXT,
	building TEXT,
	city TEXT,
	state TEXT,
	zip TEXT,
	phone TEXT,
	fax TEXT,
	hours TEXT,
	latitude FLOAT,
	longitude FLOAT,
	task_key TEXT,
	CONSTRAINT pk_legislator_offices PRIMARY KEY (id),
	CONSTRAINT fk_legislator_offices_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id)
);

CREATE INDEX ix_legislator_offices_legislator_id ON legislator_offices (legislator_id);

COMMENT ON COLUMN legislator_offices.id IS 'The publisher''s: <bioguide>-<city>.';

COMMENT ON COLUMN legislator_offices.legislator_ref IS 'legislator:<bioguide>, whether that person is loaded or not.';

COMMENT ON COLUMN legislator_offices.legislator_id IS 'legislators.id once it is loaded.';

COMMENT ON COLUMN legislator_offices.address IS 'Street and number.';

COMMENT ON COLUMN legislator_offices.suite IS 'Suite or room.';

COMMENT ON COLUMN legislator_offices.building IS 'Name of the building.';

COMMENT ON COLUMN legislator_offices.city IS 'City.';

COMMENT ON COLUMN legislator_offices.state IS 'USPS abbreviation.';

COMMENT ON COLUMN legislator_offices.zip IS 'Postal code, leading zeros included.';

COMMENT ON COLUMN legislator_offices.phone IS 'Of the office.';

COMMENT ON COLUMN legislator_offices.fax IS 'Of the office.';

COMMENT ON COLUMN legislator_offices.hours IS 'In the office''s own words.';

COMMENT ON COLUMN legislator_offices.latitude IS 'Degrees north.';

COMMENT ON COLUMN legislator_offices.longitude IS 'Degrees east.';

COMMENT ON COLUMN legislator_offices.task_key IS 'The input this row was last loaded from.';

CREATE TABLE executives (
	id TEXT NOT NULL,
	govtrack TEXT NOT NULL,
	bioguide TEXT,
	legislator_ref TEXT,
	legislator_id TEXT,
	first TEXT,
	middle TEXT,
	last TEXT,
	suffix TEXT,
	nickname TEXT,
	official_full TEXT,
	birthday TEXT,
	gender TEXT,
	type TEXT,
	party TEXT,
	start TEXT,
	end_date TEXT,
	CONSTRAINT pk_executives PRIMARY KEY (id),
	CONSTRAINT fk_executives_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT uq_executives_govtrack UNIQUE (govtrack),
	CONSTRAINT fk_executives_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id)
);

CREATE INDEX ix_executives_legislator_id ON executives (legislator_id);

COMMENT ON COLUMN executives.id IS 'executive:<govtrack>';

COMMENT ON COLUMN executives.govtrack IS 'GovTrack.us person number.';

COMMENT ON COLUMN executives.bioguide IS 'Absent for those who never sat in Congress.';

COMMENT ON COLUMN executives.legislator_ref IS 'legislator:<bioguide>, whether that person is loaded or not.';

COMMENT ON COLUMN executives.legislator_id IS 'legislators.id once it is loaded.';

COMMENT ON COLUMN executives.first IS 'Given name, at times an initial.';

COMMENT ON COLUMN executives.middle IS 'Middle name or initial.';

COMMENT ON COLUMN executives.last IS 'Family name.';

COMMENT ON COLUMN executives.suffix IS 'Jr., III.';

COMMENT ON COLUMN executives.nickname IS 'Common alternative to the given name.';

COMMENT ON COLUMN executives.official_full IS 'Full name as the chamber writes it; since 2012.';

COMMENT ON COLUMN executives.birthday IS 'ISO 8601.';

COMMENT ON COLUMN executives.gender IS 'M or F.';

COMMENT ON COLUMN executives.type IS 'Of the latest term: prez or viceprez.';

COMMENT ON COLUMN executives.party IS 'Of the latest term.';

COMMENT ON COLUMN executives.start IS 'First day, ISO 8601.';

COMMENT ON COLUMN executives.end_date IS 'Upstream `end`: last day, ISO 8601.';

CREATE TABLE member_feeds (
	bioguide TEXT NOT NULL,
	legislator_ref TEXT,
	legislator_id TEXT,
	member TEXT,
	url TEXT,
	rss_url TEXT,
	title TEXT,
	is_guessed BOOLEAN NOT NULL,
	items INTEGER,
	task_key TEXT,
	CONSTRAINT pk_member_feeds PRIMARY KEY (bioguide),
	CONSTRAINT fk_member_feeds_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id)
);

CREATE INDEX ix_member_feeds_legislator_id ON member_feeds (legislator_id);

COMMENT ON TABLE member_feeds IS 'Feeds of members of Congress.';

COMMENT ON COLUMN member_feeds.bioguide IS 'The member.';

COMMENT ON COLUMN member_feeds.legislator_ref IS 'The member as an id: legislator:C000127.';

COMMENT ON COLUMN member_feeds.legislator_id IS 'legislators.id once it is loaded.';

COMMENT ON COLUMN member_feeds.member IS 'Rep. Cornelius F. Pettibone.';

COMMENT ON COLUMN member_feeds.url IS 'The member''s site.';

COMMENT ON COLUMN member_feeds.rss_url IS 'Where the feed is asked for.';

COMMENT ON COLUMN member_feeds.title IS 'As the feed calls itself; NULL where there is none.';

COMMENT ON COLUMN member_feeds.is_guessed IS 'No list names it; it was tried.';

COMMENT ON COLUMN member_feeds.items IS 'Entries at the last look; NULL where there is no feed.';

COMMENT ON COLUMN member_feeds.task_key IS 'The input this row was last loaded from.';

CREATE TABLE member_statements (
	id TEXT NOT NULL,
	bioguide TEXT,
	legislator_ref TEXT,
	legislator_id TEXT,
	title TEXT NOT NULL,
	link TEXT,
	guid TEXT,
	description TEXT,
	feed TEXT,
	pub_date TIMESTAMP WITH TIME ZONE,
	categories JSONB NOT NULL,
	CONSTRAINT pk_member_statements PRIMARY KEY (id),
	CONSTRAINT fk_member_statements_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT fk_member_statements_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id)
);

CREATE INDEX ix_member_statements_legislator_id ON member_statements (legislator_id);

CREATE INDEX ix_member_statements_bioguide ON member_statements (bioguide);

COMMENT ON TABLE member_statements IS 'Press releases and other statements of members of Congress.';

COMMENT ON COLUMN member_statements.id IS 'statement:C000127/<hash>, documents.id.';

COMMENT ON COLUMN member_statements.bioguide IS 'The member; NULL for a feed of an unknown member.';

COMMENT ON COLUMN member_statements.legislator_ref IS 'The member as an id: legislator:C000127.';

COMMENT ON COLUMN member_statements.legislator_id IS 'legislators.id once it is loaded.';

COMMENT ON COLUMN member_statements.title IS 'As the feed has it, escapes undone.';

COMMENT ON COLUMN member_statements.link IS 'The statement''s page.';

COMMENT ON COLUMN member_statements.guid IS 'As the feed has it: an address, or `14637 at http://…`.';

COMMENT ON COLUMN member_statements.description IS 'The feed''s summary as plain text; Senate feeds have none.';

COMMENT ON COLUMN member_statements.feed IS 'Where the feed was asked for.';

COMMENT ON COLUMN member_statements.pub_date IS 'pubDate or published of the feed.';

COMMENT ON COLUMN member_statements.categories IS 'As the feed has them.';

CREATE TABLE embedding_costs (
	batch_id INTEGER NOT NULL,
	document_id TEXT NOT NULL,
	texts INTEGER NOT NULL,
	tokens INTEGER NOT NULL,
	cost FLOAT NOT NULL,
	CONSTRAINT pk_embedding_costs PRIMARY KEY (batch_id, document_id),
	CONSTRAINT fk_embedding_costs_batch_id FOREIGN KEY(batch_id) REFERENCES embedding_batches (id) ON DELETE CASCADE
);

CREATE INDEX ix_embedding_costs_document_id ON embedding_costs (document_id);

COMMENT ON COLUMN embedding_costs.document_id IS 'documents.id';

COMMENT ON COLUMN embedding_costs.cost IS 'Its share of the batch, in USD.';

CREATE TABLE bill_sponsors (
	bill_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	bioguide_id TEXT,
	legislator_ref TEXT,
	legislator_id TEXT,
	full_name TEXT,
	first_name TEXT,
	middle_name TEXT,
	last_name TEXT,
	party TEXT,
	state TEXT,
	district INTEGER,
	is_by_request BOOLEAN,
	by_request_type TEXT,
	CONSTRAINT pk_bill_sponsors PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_sponsors_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE,
	CONSTRAINT fk_bill_sponsors_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id)
);

CREATE INDEX ix_bill_sponsors_legislator_id ON bill_sponsors (legislator_id);

COMMENT ON TABLE bill_sponsors IS 'Who introduced a bill; mostly one.';

COMMENT ON COLUMN bill_sponsors.bill_id IS 'bills.id';

COMMENT ON COLUMN bill_sponsors.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN bill_sponsors.bioguide_id IS 'As upstream; NULL for a committee.';

COMMENT ON COLUMN bill_sponsors.legislator_ref IS 'legislator:C000127.';

COMMENT ON COLUMN bill_sponsors.legislator_id IS 'legislators.id once it is loaded.';

COMMENT ON COLUMN bill_sponsors.full_name IS 'Rep. Armstrong, Kelly [R-ND-At Large].';

COMMENT ON COLUMN bill_sponsors.first_name IS 'Given name.';

COMMENT ON COLUMN bill_sponsors.middle_name IS 'Middle name.';

COMMENT ON COLUMN bill_sponsors.last_name IS 'Family name.';

COMMENT ON COLUMN bill_sponsors.party IS 'R, D, I.';

COMMENT ON COLUMN bill_sponsors.state IS 'Two letters.';

COMMENT ON COLUMN bill_sponsors.district IS '0 is at large; NULL for senators.';

COMMENT ON COLUMN bill_sponsors.is_by_request IS 'Introduced by request, mostly of the President.';

COMMENT ON COLUMN bill_sponsors.by_request_type IS 'As formats before 3.0.0 say it.';

CREATE TABLE bill_cosponsors (
	bill_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	bioguide_id TEXT,
	legislator_ref TEXT,
	legislator_id TEXT,
	full_name TEXT,
	first_name TEXT,
	middle_name TEXT,
	last_name TEXT,
	party TEXT,
	state TEXT,
	district INTEGER,
	sponsorship_date TEXT,
	sponsorship_withdrawn_date TEXT,
	is_original_cosponsor BOOLEAN,
	CONSTRAINT pk_bill_cosponsors PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_cosponsors_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE,
	CONSTRAINT fk_bill_cosponsors_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id)
);

CREATE INDEX ix_bill_cosponsors_legislator_id ON bill_cosponsors (legislator_id);

COMMENT ON TABLE bill_cosponsors IS 'Members who signed a bill, those included who withdrew.';

COMMENT ON COLUMN bill_cosponsors.bill_id IS 'bills.id';

COMMENT ON COLUMN bill_cosponsors.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN bill_cosponsors.bioguide_id IS 'As upstream; NULL for a committee.';

COMMENT ON COLUMN bill_cosponsors.legislator_ref IS 'legislator:C000127.';

COMMENT ON COLUMN bill_cosponsors.legislator_id IS 'legislators.id once it is loaded.';

COMMENT ON COLUMN bill_cosponsors.full_name IS 'Rep. Armstrong, Kelly [R-ND-At Large].';

COMMENT ON COLUMN bill_cosponsors.first_name IS 'Given name.';

COMMENT ON COLUMN bill_cosponsors.middle_name IS 'Middle name.';

COMMENT ON COLUMN bill_cosponsors.last_name IS 'Family name.';

COMMENT ON COLUMN bill_cosponsors.party IS 'R, D, I.';

COMMENT ON COLUMN bill_cosponsors.state IS 'Two letters.';

COMMENT ON COLUMN bill_cosponsors.district IS '0 is at large; NULL for senators.';

COMMENT ON COLUMN bill_cosponsors.sponsorship_date IS 'ISO date.';

COMMENT ON COLUMN bill_cosponsors.sponsorship_withdrawn_date IS 'ISO date the name was taken back; NULL for most.';

COMMENT ON COLUMN bill_cosponsors.is_original_cosponsor IS 'Since the day of introduction.';

CREATE TABLE bill_actions (
	bill_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	action_date TEXT,
	action_time TEXT,
	text TEXT,
	type TEXT,
	action_code TEXT,
	source_system_code INTEGER,
	source_system_name TEXT,
	committees JSONB,
	links JSONB,
	calendar_number JSONB,
	CONSTRAINT pk_bill_actions PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_actions_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE
);

COMMENT ON TABLE bill_actions IS 'What happened to a bill, newest first.';

COMMENT ON COLUMN bill_actions.bill_id IS 'bills.id';

COMMENT ON COLUMN bill_actions.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN bill_actions.action_date IS 'ISO date.';

COMMENT ON COLUMN bill_actions.action_time IS '24 hours, Eastern time; NULL for most.';

COMMENT ON COLUMN bill_actions.text IS 'What happened; a few actions have none.';

COMMENT ON COLUMN bill_actions.type IS 'IntroReferral, Committee, Floor, BecameLaw, …';

COMMENT ON COLUMN bill_actions.action_code IS 'The publisher''s code: H11100.';

COMMENT ON COLUMN bill_actions.source_system_code IS 'Who recorded it, by number: 9.';

COMMENT ON COLUMN bill_actions.source_system_name IS 'Who recorded it: Library of Congress.';

COMMENT ON COLUMN bill_actions.committees IS 'System codes of the committees concerned.';

COMMENT ON COLUMN bill_actions.links IS 'What the text refers to: [{name, url}].';

COMMENT ON COLUMN bill_actions.calendar_number IS 'The calendar it was placed on.';

CREATE TABLE bill_committees (
	bill_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	committee_ref TEXT,
	committee_id TEXT,
	system_code TEXT,
	name TEXT,
	chamber TEXT,
	type TEXT,
	parent_system_code TEXT,
	activities JSONB,
	CONSTRAINT pk_bill_committees PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_committees_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE,
	CONSTRAINT fk_bill_committees_committee_id FOREIGN KEY(committee_id) REFERENCES committees (id)
);

CREATE INDEX ix_bill_committees_committee_id ON bill_committees (committee_id);

COMMENT ON TABLE bill_committees IS 'Committees and subcommittees a bill was before.';

COMMENT ON COLUMN bill_committees.bill_id IS 'bills.id';

COMMENT ON COLUMN bill_committees.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN bill_committees.committee_ref IS 'committee:HSAG14.';

COMMENT ON COLUMN bill_committees.committee_id IS 'committees.id once it is loaded.';

COMMENT ON COLUMN bill_committees.system_code IS 'As upstream: hsag14.';

COMMENT ON COLUMN bill_committees.name IS 'The committee''s name.';

COMMENT ON COLUMN bill_committees.chamber IS 'House or Senate; NULL for a subcommittee.';

COMMENT ON COLUMN bill_committees.type IS 'Standing, Select, …; NULL for a subcommittee.';

COMMENT ON COLUMN bill_committees.parent_system_code IS 'The committee above a subcommittee.';

COMMENT ON COLUMN bill_committees.activities IS 'What it did: [{name, date}].';

CREATE TABLE bill_subjects (
	bill_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	name TEXT NOT NULL,
	parent_name TEXT,
	update_date TEXT,
	CONSTRAINT pk_bill_subjects PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_subjects_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE
);

CREATE INDEX ix_bill_subjects_name ON bill_subjects (name);

COMMENT ON TABLE bill_subjects IS 'Subject terms the Congressional Research Service assigns to a bill.';

COMMENT ON COLUMN bill_subjects.bill_id IS 'bills.id';

COMMENT ON COLUMN bill_subjects.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN bill_subjects.name IS 'A legislative subject term.';

COMMENT ON COLUMN bill_subjects.parent_name IS 'The broader term; before format 1.0.0.';

COMMENT ON COLUMN bill_subjects.update_date IS 'ISO moment.';

CREATE TABLE bill_summaries (
	bill_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	version_code TEXT,
	name TEXT,
	action_date TEXT,
	action_desc TEXT,
	update_date TEXT,
	last_summary_update_date TEXT,
	text TEXT,
	CONSTRAINT pk_bill_summaries PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_summaries_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE
);

COMMENT ON TABLE bill_summaries IS 'Summaries by the Congressional Research Service, one for each version it summarised.';

COMMENT ON COLUMN bill_summaries.bill_id IS 'bills.id';

COMMENT ON COLUMN bill_summaries.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN bill_summaries.version_code IS 'Orders the versions: 00 is as introduced.';

COMMENT ON COLUMN bill_summaries.name IS 'The version summarised; before format 3.0.0.';

COMMENT ON COLUMN bill_summaries.action_date IS 'ISO date of the version.';

COMMENT ON COLUMN bill_summaries.action_desc IS 'The version: Introduced in House.';

COMMENT ON COLUMN bill_summaries.update_date IS 'ISO moment.';

COMMENT ON COLUMN bill_summaries.last_summary_update_date IS 'ISO moment; before format 3.0.0.';

COMMENT ON COLUMN bill_summaries.text IS 'HTML, as published.';

CREATE TABLE bill_titles (
	bill_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	title_type TEXT,
	title TEXT,
	chamber_code TEXT,
	chamber_name TEXT,
	parent_title_type TEXT,
	bill_text_version_name TEXT,
	bill_text_version_code TEXT,
	update_date TEXT,
	title_type_code INTEGER,
	CONSTRAINT pk_bill_titles PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_titles_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE
);

COMMENT ON TABLE bill_titles IS 'Every title a bill has borne.';

COMMENT ON COLUMN bill_titles.bill_id IS 'bills.id';

COMMENT ON COLUMN bill_titles.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN bill_titles.title_type IS 'Official Title as Introduced, …';

COMMENT ON COLUMN bill_titles.title IS 'The title.';

COMMENT ON COLUMN bill_titles.chamber_code IS 'H or S.';

COMMENT ON COLUMN bill_titles.chamber_name IS 'House or Senate.';

COMMENT ON COLUMN bill_titles.parent_title_type IS 'Short Title; before format 3.0.0.';

COMMENT ON COLUMN bill_titles.bill_text_version_name IS 'The version it is in.';

COMMENT ON COLUMN bill_titles.bill_text_version_code IS 'IH, ENR.';

COMMENT ON COLUMN bill_titles.update_date IS 'ISO moment.';

COMMENT ON COLUMN bill_titles.title_type_code IS 'The publisher''s number of the title type.';

CREATE TABLE bill_related (
	bill_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	related_ref TEXT,
	related_id TEXT,
	congress INTEGER,
	type TEXT,
	number INTEGER,
	title TEXT,
	latest_action_date TEXT,
	latest_action_time TEXT,
	latest_action_text TEXT,
	relationship_details JSONB,
	CONSTRAINT pk_bill_related PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_related_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE,
	CONSTRAINT fk_bill_related_related_id FOREIGN KEY(related_id) REFERENCES bills (id)
);

CREATE INDEX ix_bill_related_related_id ON bill_related (related_id);

COMMENT ON TABLE bill_related IS 'Bills related to a bill.';

COMMENT ON COLUMN bill_related.bill_id IS 'bills.id';

COMMENT ON COLUMN bill_related.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN bill_related.related_ref IS 'bill:119-s-1.';

COMMENT ON COLUMN bill_related.related_id IS 'bills.id once it is loaded.';

COMMENT ON COLUMN bill_related.congress IS '119.';

COMMENT ON COLUMN bill_related.type IS 'S, HRES, …';

COMMENT ON COLUMN bill_related.number IS 'Within its Congress and type.';

COMMENT ON COLUMN bill_related.title IS 'Its title.';

COMMENT ON COLUMN bill_related.latest_action_date IS 'ISO date.';

COMMENT ON COLUMN bill_related.latest_action_time IS '24 hours, Eastern time.';

COMMENT ON COLUMN bill_related.latest_action_text IS 'What happened to it last.';

COMMENT ON COLUMN bill_related.relationship_details IS 'How, and who says so: [{type, identifiedBy}].';

CREATE TABLE bill_amendments (
	bill_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	congress INTEGER,
	type TEXT,
	number INTEGER,
	description TEXT,
	purpose TEXT,
	sponsor_name TEXT,
	sponsor_ref TEXT,
	sponsor_id TEXT,
	submitted_date TEXT,
	proposed_date TEXT,
	latest_action_date TEXT,
	latest_action_time TEXT,
	latest_action_text TEXT,
	create_date TEXT,
	update_date TEXT,
	amended_amendment JSONB,
	actions JSONB,
	cosponsors JSONB,
	links JSONB,
	notes JSONB,
	CONSTRAINT pk_bill_amendments PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_amendments_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE,
	CONSTRAINT fk_bill_amendments_sponsor_id FOREIGN KEY(sponsor_id) REFERENCES legislators (id)
);

CREATE INDEX ix_bill_amendments_sponsor_id ON bill_amendments (sponsor_id);

COMMENT ON TABLE bill_amendments IS 'Amendments offered or submitted to a bill.';

COMMENT ON COLUMN bill_amendments.bill_id IS 'bills.id';

COMMENT ON COLUMN bill_amendments.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN bill_amendments.congress IS '119.';

COMMENT ON COLUMN bill_amendments.type IS 'SAMDT, HAMDT, SUAMDT.';

COMMENT ON COLUMN bill_amendments.number IS 'Within its Congress and type.';

COMMENT ON COLUMN bill_amendments.description IS 'What it does.';

COMMENT ON COLUMN bill_amendments.purpose IS 'Its purpose, as the sponsor states it.';

COMMENT ON COLUMN bill_amendments.sponsor_name IS 'Sen. Wyden, Ron [D-OR], or a committee.';

COMMENT ON COLUMN bill_amendments.sponsor_ref IS 'legislator:W000779.';

COMMENT ON COLUMN bill_amendments.sponsor_id IS 'legislators.id once it is loaded.';

COMMENT ON COLUMN bill_amendments.submitted_date IS 'ISO moment.';

COMMENT ON COLUMN bill_amendments.proposed_date IS 'ISO moment.';

COMMENT ON COLUMN bill_amendments.latest_action_date IS 'ISO date.';

COMMENT ON COLUMN bill_amendments.latest_action_time IS '24 hours, Eastern time.';

COMMENT ON COLUMN bill_amendments.latest_action_text IS 'What happened to it last.';

COMMENT ON COLUMN bill_amendments.create_date IS 'ISO moment.';

COMMENT ON COLUMN bill_amendments.update_date IS 'ISO moment.';

COMMENT ON COLUMN bill_amendments.amended_amendment IS 'The amendment it amends: {congress, type, number, …}.';

COMMENT ON COLUMN bill_amendments.actions IS 'What happened to it, with recorded votes.';

COMMENT ON COLUMN bill_amendments.cosponsors IS 'Who signed it.';

COMMENT ON COLUMN bill_amendments.links IS 'What it refers to: [{name, url}].';

COMMENT ON COLUMN bill_amendments.notes IS 'The publisher''s notes.';

CREATE TABLE bill_text_versions (
	id TEXT NOT NULL,
	bill_ref TEXT,
	bill_id TEXT,
	version_code TEXT NOT NULL,
	type TEXT,
	date TEXT,
	url TEXT,
	official_title TEXT,
	formats JSONB,
	CONSTRAINT pk_bill_text_versions PRIMARY KEY (id),
	CONSTRAINT fk_bill_text_versions_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT fk_bill_text_versions_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id)
);

CREATE INDEX ix_bill_text_versions_bill_id ON bill_text_versions (bill_id);

COMMENT ON TABLE bill_text_versions IS 'The texts of a bill, one for each stage at which it was printed.';

COMMENT ON COLUMN bill_text_versions.id IS 'bill:119-hr-1/ih, documents.id.';

COMMENT ON COLUMN bill_text_versions.bill_ref IS 'bill:119-hr-1.';

COMMENT ON COLUMN bill_text_versions.bill_id IS 'bills.id once it is loaded.';

COMMENT ON COLUMN bill_text_versions.version_code IS 'ih, rh, eh, enr, eas2, …';

COMMENT ON COLUMN bill_text_versions.type IS 'Introduced in House.';

COMMENT ON COLUMN bill_text_versions.date IS 'ISO date; the enrolled text often has none.';

COMMENT ON COLUMN bill_text_versions.url IS 'The file the text was read from, or the best one listed.';

COMMENT ON COLUMN bill_text_versions.official_title IS 'To amend …; as the text itself states it.';

COMMENT ON COLUMN bill_text_versions.formats IS 'Addresses of all files listed for this version.';

CREATE TABLE cbo_publications (
	id TEXT NOT NULL,
	publication_id TEXT NOT NULL,
	title TEXT NOT NULL,
	date TIMESTAMP WITH TIME ZONE,
	link TEXT,
	description TEXT,
	bill_number TEXT,
	title_bill TEXT,
	congress INTEGER,
	bill_ref TEXT,
	bill_id TEXT,
	CONSTRAINT pk_cbo_publications PRIMARY KEY (id),
	CONSTRAINT fk_cbo_publications_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT fk_cbo_publications_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id)
);

CREATE INDEX ix_cbo_publications_publication_id ON cbo_publications (publication_id);

CREATE INDEX ix_cbo_publications_bill_id ON cbo_publications (bill_id);

COMMENT ON TABLE cbo_publications IS 'Cost estimates and other publications of the Congressional Budget Office.';

COMMENT ON COLUMN cbo_publications.id IS 'cbo:61234, documents.id.';

COMMENT ON COLUMN cbo_publications.publication_id IS '61234, the number in its address.';

COMMENT ON COLUMN cbo_publications.title IS 'As CBO words it.';

COMMENT ON COLUMN cbo_publications.date IS 'Date of the list, pubDate of the feed.';

COMMENT ON COLUMN cbo_publications.link IS 'Its page at cbo.gov.';

COMMENT ON COLUMN cbo_publications.description IS 'Which version of a bill it estimates, or what it is about.';

COMMENT ON COLUMN cbo_publications.bill_number IS 'Bill_Number of the list: often empty, sometimes wrong.';

COMMENT ON COLUMN cbo_publications.title_bill IS 'The first bill the title names; it wins over bill_number.';

COMMENT ON COLUMN cbo_publications.congress IS 'Of the list it is in, else that of its date.';

COMMENT ON COLUMN cbo_publications.bill_ref IS 'The bill it is about: bill:119-hr-2101.';

COMMENT ON COLUMN cbo_publications.bill_id IS 'bills.id once it is loaded.';

CREATE TABLE committee_reports (
	id TEXT NOT NULL,
	package_id TEXT NOT NULL,
	access_id TEXT NOT NULL,
	title TEXT NOT NULL,
	congress INTEGER,
	session INTEGER,
	number INTEGER,
	part_number INTEGER,
	chamber TEXT,
	doc_class TEXT,
	subtitle TEXT,
	short_title TEXT,
	recommendation TEXT,
	submitted_statement TEXT,
	legislative_history TEXT,
	preferred_citation TEXT,
	date_issued TEXT,
	is_conference_report BOOLEAN,
	bill_ref TEXT,
	bill_id TEXT,
	submitted_by_ref TEXT,
	submitted_by_id TEXT,
	CONSTRAINT pk_committee_reports PRIMARY KEY (id),
	CONSTRAINT fk_committee_reports_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT fk_committee_reports_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id),
	CONSTRAINT fk_committee_reports_submitted_by_id FOREIGN KEY(submitted_by_id) REFERENCES legislators (id)
);

CREATE INDEX ix_committee_reports_submitted_by_id ON committee_reports (submitted_by_id);

CREATE INDEX ix_committee_reports_date_issued ON committee_reports (date_issued);

CREATE INDEX ix_committee_reports_bill_id ON committee_reports (bill_id);

CREATE INDEX ix_committee_reports_package_id ON committee_reports (package_id);

COMMENT ON TABLE committee_reports IS 'Reports of committees and conferences to their chambers.';

COMMENT ON COLUMN committee_reports.id IS 'crpt:<package or granule>';

COMMENT ON COLUMN committee_reports.package_id IS 'CRPT-119hrpt100.';

COMMENT ON COLUMN committee_reports.access_id IS 'The granule: CRPT-119hrpt100-pt2.';

COMMENT ON COLUMN committee_reports.title IS 'In capitals, as printed.';

COMMENT ON COLUMN committee_reports.congress IS '119.';

COMMENT ON COLUMN committee_reports.session IS 'Of that Congress: 1 or 2.';

COMMENT ON COLUMN committee_reports.number IS '100 of H. Rept. 119-100.';

COMMENT ON COLUMN committee_reports.part_number IS '2 of Part 2; NULL for a report without parts.';

COMMENT ON COLUMN committee_reports.chamber IS 'HOUSE or SENATE.';

COMMENT ON COLUMN committee_reports.doc_class IS 'HRPT, SRPT, or ERPT of the Senate in executive session.';

COMMENT ON COLUMN committee_reports.subtitle IS 'Report together with minority views to accompany H.R. 3495.';

COMMENT ON COLUMN committee_reports.short_title IS 'Of the bill reported.';

COMMENT ON COLUMN committee_reports.recommendation IS 'What the committee asks its chamber to do.';

COMMENT ON COLUMN committee_reports.submitted_statement IS 'Who submitted it for which committee.';

COMMENT ON COLUMN committee_reports.legislative_history IS 'What became of the report: ordered to be printed, committed to ….';

COMMENT ON COLUMN committee_reports.preferred_citation IS 'H. Rept. 119-494, Part 2.';

COMMENT ON COLUMN committee_reports.date_issued IS 'Day of the report, or of this part''s own action; ISO 8601.';

COMMENT ON COLUMN committee_reports.is_conference_report IS 'Of the managers of both chambers.';

COMMENT ON COLUMN committee_reports.bill_ref IS 'The bill reported: bill:<congress>-<type>-<number>';

COMMENT ON COLUMN committee_reports.bill_id IS 'bills.id once it is loaded.';

COMMENT ON COLUMN committee_reports.submitted_by_ref IS 'legislator:<bioguide> of who submitted it.';

COMMENT ON COLUMN committee_reports.submitted_by_id IS 'legislators.id once it is loaded.';

CREATE TABLE crec_bills (
	granule_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	bill_ref TEXT,
	bill_id TEXT,
	congress INTEGER,
	type TEXT,
	number INTEGER,
	context TEXT,
	CONSTRAINT pk_crec_bills PRIMARY KEY (granule_id, ord),
	CONSTRAINT fk_crec_bills_granule_id FOREIGN KEY(granule_id) REFERENCES crec_granules (id) ON DELETE CASCADE,
	CONSTRAINT fk_crec_bills_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id)
);

CREATE INDEX ix_crec_bills_bill_id ON crec_bills (bill_id);

COMMENT ON TABLE crec_bills IS 'Bills a granule names; some appear twice.';

COMMENT ON COLUMN crec_bills.granule_id IS 'crec_granules.id';

COMMENT ON COLUMN crec_bills.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN crec_bills.bill_ref IS 'bill:<congress>-<type>-<number>';

COMMENT ON COLUMN crec_bills.bill_id IS 'bills.id once it is loaded.';

COMMENT ON COLUMN crec_bills.congress IS 'Of the bill.';

COMMENT ON COLUMN crec_bills.type IS 'HR, S, HJRES, …';

COMMENT ON COLUMN crec_bills.number IS 'Of the bill.';

COMMENT ON COLUMN crec_bills.context IS 'TITLE, HEADERLINE, FIRSTPARAGRAPH or OTHER.';

CREATE TABLE hearing_bills (
	hearing_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	bill_ref TEXT,
	bill_id TEXT,
	congress INTEGER,
	type TEXT,
	number INTEGER,
	context TEXT,
	CONSTRAINT pk_hearing_bills PRIMARY KEY (hearing_id, ord),
	CONSTRAINT fk_hearing_bills_hearing_id FOREIGN KEY(hearing_id) REFERENCES hearings (id) ON DELETE CASCADE,
	CONSTRAINT fk_hearing_bills_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id)
);

CREATE INDEX ix_hearing_bills_bill_id ON hearing_bills (bill_id);

COMMENT ON TABLE hearing_bills IS 'Bills a hearing names.';

COMMENT ON COLUMN hearing_bills.hearing_id IS 'hearings.id';

COMMENT ON COLUMN hearing_bills.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN hearing_bills.bill_ref IS 'bill:<congress>-<type>-<number>';

COMMENT ON COLUMN hearing_bills.bill_id IS 'bills.id once it is loaded.';

COMMENT ON COLUMN hearing_bills.congress IS 'Of the bill.';

COMMENT ON COLUMN hearing_bills.type IS 'HR, S, HJRES, …';

COMMENT ON COLUMN hearing_bills.number IS 'Of the bill.';

COMMENT ON COLUMN hearing_bills.context IS 'COVER: the hearing is about it; BODY: it is mentioned.';

CREATE TABLE lda_activities (
	filing_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	general_issue_code TEXT,
	general_issue_code_display TEXT,
	description TEXT,
	foreign_entity_issues TEXT,
	CONSTRAINT pk_lda_activities PRIMARY KEY (filing_id, ord),
	CONSTRAINT fk_lda_activities_filing_id FOREIGN KEY(filing_id) REFERENCES lda_filings (id) ON DELETE CASCADE
);

COMMENT ON TABLE lda_activities IS 'What was lobbied on.';

COMMENT ON COLUMN lda_activities.filing_id IS 'lda_filings.id';

COMMENT ON COLUMN lda_activities.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN lda_activities.general_issue_code IS 'TAX; NULL in the quarterly files.';

COMMENT ON COLUMN lda_activities.general_issue_code_display IS 'Taxation/Internal Revenue Code.';

COMMENT ON COLUMN lda_activities.description IS 'The specific issues, as the registrant words them; bills by number.';

COMMENT ON COLUMN lda_activities.foreign_entity_issues IS 'The interest of foreign entities in them.';

CREATE TABLE lda_activity_lobbyists (
	filing_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	activity INTEGER,
	lobbyist_ref TEXT,
	lobbyist_id TEXT,
	name TEXT,
	covered_position TEXT,
	"new" BOOLEAN,
	status INTEGER,
	indicator INTEGER,
	CONSTRAINT pk_lda_activity_lobbyists PRIMARY KEY (filing_id, ord),
	CONSTRAINT fk_lda_activity_lobbyists_filing_id FOREIGN KEY(filing_id) REFERENCES lda_filings (id) ON DELETE CASCADE,
	CONSTRAINT fk_lda_activity_lobbyists_lobbyist_id FOREIGN KEY(lobbyist_id) REFERENCES lda_lobbyists (id)
);

CREATE INDEX ix_lda_activity_lobbyists_lobbyist_id_lobbyist_ref ON lda_activity_lobbyists (lobbyist_id, lobbyist_ref);

COMMENT ON TABLE lda_activity_lobbyists IS 'Who lobbied on what.';

COMMENT ON COLUMN lda_activity_lobbyists.filing_id IS 'lda_filings.id';

COMMENT ON COLUMN lda_activity_lobbyists.ord IS 'Place in the filing.';

COMMENT ON COLUMN lda_activity_lobbyists.activity IS 'lda_activities.ord; NULL where it is said of the filing as a whole.';

COMMENT ON COLUMN lda_activity_lobbyists.lobbyist_ref IS 'lobbyist.id; NULL in the quarterly files.';

COMMENT ON COLUMN lda_activity_lobbyists.lobbyist_id IS 'lda_lobbyists.id once it is loaded.';

COMMENT ON COLUMN lda_activity_lobbyists.name IS 'As published with this filing.';

COMMENT ON COLUMN lda_activity_lobbyists.covered_position IS 'Office held in the government before.';

COMMENT ON COLUMN lda_activity_lobbyists."new" IS 'Named for the first time.';

COMMENT ON COLUMN lda_activity_lobbyists.status IS '0 active, 1 ended, 3 undetermined; quarterly files.';

COMMENT ON COLUMN lda_activity_lobbyists.indicator IS 'Covered position: 0, 1 or 2; quarterly files, unreliable.';

CREATE TABLE lda_activity_entities (
	filing_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	activity INTEGER,
	entity_id INTEGER,
	name TEXT,
	CONSTRAINT pk_lda_activity_entities PRIMARY KEY (filing_id, ord),
	CONSTRAINT fk_lda_activity_entities_filing_id FOREIGN KEY(filing_id) REFERENCES lda_filings (id) ON DELETE CASCADE
);

COMMENT ON TABLE lda_activity_entities IS 'Houses of Congress and agencies that were contacted.';

COMMENT ON COLUMN lda_activity_entities.filing_id IS 'lda_filings.id';

COMMENT ON COLUMN lda_activity_entities.ord IS 'Place in the filing.';

COMMENT ON COLUMN lda_activity_entities.activity IS 'lda_activities.ord; NULL where it is said of the filing as a whole.';

COMMENT ON COLUMN lda_activity_entities.entity_id IS 'Of the API''s list; NULL in the quarterly files.';

COMMENT ON COLUMN lda_activity_entities.name IS 'HOUSE OF REPRESENTATIVES.';

CREATE TABLE lda_foreign_entities (
	filing_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	name TEXT,
	address TEXT,
	city TEXT,
	state TEXT,
	state_display TEXT,
	country TEXT,
	country_display TEXT,
	ppb_city TEXT,
	ppb_state TEXT,
	ppb_state_display TEXT,
	ppb_country TEXT,
	ppb_country_display TEXT,
	contribution NUMERIC(16, 2),
	ownership_percentage NUMERIC(16, 2),
	status INTEGER,
	CONSTRAINT pk_lda_foreign_entities PRIMARY KEY (filing_id, ord),
	CONSTRAINT fk_lda_foreign_entities_filing_id FOREIGN KEY(filing_id) REFERENCES lda_filings (id) ON DELETE CASCADE
);

COMMENT ON TABLE lda_foreign_entities IS 'Foreign entities with an interest in the client.';

COMMENT ON COLUMN lda_foreign_entities.filing_id IS 'lda_filings.id';

COMMENT ON COLUMN lda_foreign_entities.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN lda_foreign_entities.name IS 'Of the entity.';

COMMENT ON COLUMN lda_foreign_entities.address IS 'Street.';

COMMENT ON COLUMN lda_foreign_entities.city IS 'City.';

COMMENT ON COLUMN lda_foreign_entities.state IS 'Postal code.';

COMMENT ON COLUMN lda_foreign_entities.state_display IS 'Virginia.';

COMMENT ON COLUMN lda_foreign_entities.country IS 'ISO code; empty where undetermined.';

COMMENT ON COLUMN lda_foreign_entities.country_display IS 'United States of America.';

COMMENT ON COLUMN lda_foreign_entities.ppb_city IS 'Of the principal place of business.';

COMMENT ON COLUMN lda_foreign_entities.ppb_state IS 'Of the principal place of business: postal code.';

COMMENT ON COLUMN lda_foreign_entities.ppb_state_display IS 'The same in words.';

COMMENT ON COLUMN lda_foreign_entities.ppb_country IS 'Of the principal place of business: ISO code.';

COMMENT ON COLUMN lda_foreign_entities.ppb_country_display IS 'The same in words.';

COMMENT ON COLUMN lda_foreign_entities.contribution IS 'US dollars towards the lobbying.';

COMMENT ON COLUMN lda_foreign_entities.ownership_percentage IS 'Share in the client.';

COMMENT ON COLUMN lda_foreign_entities.status IS '0 active, 1 ended, 3 undetermined; quarterly files.';

CREATE TABLE lda_affiliated_organizations (
	filing_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	name TEXT,
	url TEXT,
	address_1 TEXT,
	address_2 TEXT,
	address_3 TEXT,
	address_4 TEXT,
	city TEXT,
	zip TEXT,
	state TEXT,
	state_display TEXT,
	country TEXT,
	country_display TEXT,
	ppb_city TEXT,
	ppb_state TEXT,
	ppb_state_display TEXT,
	ppb_country TEXT,
	ppb_country_display TEXT,
	CONSTRAINT pk_lda_affiliated_organizations PRIMARY KEY (filing_id, ord),
	CONSTRAINT fk_lda_affiliated_organizations_filing_id FOREIGN KEY(filing_id) REFERENCES lda_filings (id) ON DELETE CASCADE
);

COMMENT ON TABLE lda_affiliated_organizations IS 'Organizations that pay for and take part in the lobbying.';

COMMENT ON COLUMN lda_affiliated_organizations.filing_id IS 'lda_filings.id';

COMMENT ON COLUMN lda_affiliated_organizations.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN lda_affiliated_organizations.name IS 'Of the organization.';

COMMENT ON COLUMN lda_affiliated_organizations.url IS 'Where it lists its members.';

COMMENT ON COLUMN lda_affiliated_organizations.address_1 IS 'First line; in the quarterly files the whole address.';

COMMENT ON COLUMN lda_affiliated_organizations.address_2 IS 'Second line.';

COMMENT ON COLUMN lda_affiliated_organizations.address_3 IS 'Third line.';

COMMENT ON COLUMN lda_affiliated_organizations.address_4 IS 'Fourth line.';

COMMENT ON COLUMN lda_affiliated_organizations.city IS 'City.';

COMMENT ON COLUMN lda_affiliated_organizations.zip IS 'ZIP code.';

COMMENT ON COLUMN lda_affiliated_organizations.state IS 'Postal code.';

COMMENT ON COLUMN lda_affiliated_organizations.state_display IS 'Virginia.';

COMMENT ON COLUMN lda_affiliated_organizations.country IS 'ISO code; empty where undetermined.';

COMMENT ON COLUMN lda_affiliated_organizations.country_display IS 'United States of America.';

COMMENT ON COLUMN lda_affiliated_organizations.ppb_city IS 'Of the principal place of business.';

COMMENT ON COLUMN lda_affiliated_organizations.ppb_state IS 'Of the principal place of business: postal code.';

COMMENT ON COLUMN lda_affiliated_organizations.ppb_state_display IS 'The same in words.';

COMMENT ON COLUMN lda_affiliated_organizations.ppb_country IS 'Of the principal place of business: ISO code.';

COMMENT ON COLUMN lda_affiliated_organizations.ppb_country_display IS 'The same in words.';

CREATE TABLE lda_convictions (
	filing_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	lobbyist_ref TEXT,
	lobbyist_id TEXT,
	name TEXT,
	date TEXT,
	description TEXT,
	CONSTRAINT pk_lda_convictions PRIMARY KEY (filing_id, ord),
	CONSTRAINT fk_lda_convictions_filing_id FOREIGN KEY(filing_id) REFERENCES lda_filings (id) ON DELETE CASCADE,
	CONSTRAINT fk_lda_convictions_lobbyist_id FOREIGN KEY(lobbyist_id) REFERENCES lda_lobbyists (id)
);

CREATE INDEX ix_lda_convictions_lobbyist_id ON lda_convictions (lobbyist_id);

COMMENT ON TABLE lda_convictions IS 'Convictions of lobbyists that a filing discloses (conviction_disclosures).';

COMMENT ON COLUMN lda_convictions.filing_id IS 'lda_filings.id';

COMMENT ON COLUMN lda_convictions.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN lda_convictions.lobbyist_ref IS 'lobbyist.id.';

COMMENT ON COLUMN lda_convictions.lobbyist_id IS 'lda_lobbyists.id once it is loaded.';

COMMENT ON COLUMN lda_convictions.name IS 'Of the lobbyist.';

COMMENT ON COLUMN lda_convictions.date IS 'ISO day of the conviction.';

COMMENT ON COLUMN lda_convictions.description IS 'Of the offense.';

CREATE TABLE executive_ids (
	executive_id TEXT NOT NULL,
	scheme TEXT NOT NULL,
	ord INTEGER NOT NULL,
	value TEXT NOT NULL,
	CONSTRAINT pk_executive_ids PRIMARY KEY (executive_id, scheme, ord),
	CONSTRAINT fk_executive_ids_executive_id FOREIGN KEY(executive_id) REFERENCES executives (id) ON DELETE CASCADE
);

COMMENT ON COLUMN executive_ids.executive_id IS 'executives.id';

COMMENT ON COLUMN executive_ids.scheme IS 'icpsr_prez, wikidata …';

COMMENT ON COLUMN executive_ids.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN executive_ids.value IS 'As published.';

CREATE TABLE executive_terms (
	executive_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	type TEXT NOT NULL,
	start TEXT,
	end_date TEXT,
	party TEXT,
	how TEXT,
	CONSTRAINT pk_executive_terms PRIMARY KEY (executive_id, ord),
	CONSTRAINT fk_executive_terms_executive_id FOREIGN KEY(executive_id) REFERENCES executives (id) ON DELETE CASCADE
);

COMMENT ON COLUMN executive_terms.executive_id IS 'executives.id';

COMMENT ON COLUMN executive_terms.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN executive_terms.type IS 'prez or viceprez.';

COMMENT ON COLUMN executive_terms.start IS 'First day, ISO 8601.';

COMMENT ON COLUMN executive_terms.end_date IS 'Upstream `end`: last day, ISO 8601.';

COMMENT ON COLUMN executive_terms.party IS 'From which elected.';

COMMENT ON COLUMN executive_terms.how IS 'election, succession or appointment.';

CREATE TABLE public_laws (
	id TEXT NOT NULL,
	package_id TEXT NOT NULL,
	congress INTEGER NOT NULL,
	doc_number INTEGER NOT NULL,
	public_private TEXT NOT NULL,
	doc_title TEXT,
	official_title TEXT,
	short_title TEXT,
	approved_date TEXT,
	stat_citation TEXT,
	stat_volume INTEGER,
	stat_page TEXT,
	bill_ref TEXT,
	bill_id TEXT,
	processed_date TEXT,
	CONSTRAINT pk_public_laws PRIMARY KEY (id),
	CONSTRAINT fk_public_laws_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT fk_public_laws_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id)
);

CREATE INDEX ix_public_laws_stat_volume_stat_page ON public_laws (stat_volume, stat_page);

CREATE INDEX ix_public_laws_bill_id ON public_laws (bill_id);

CREATE INDEX ix_public_laws_congress_doc_number ON public_laws (congress, doc_number);

COMMENT ON TABLE public_laws IS 'Public and private laws as enacted.';

COMMENT ON COLUMN public_laws.id IS 'plaw:119-21, or plaw:119-pvt-3 for a private law.';

COMMENT ON COLUMN public_laws.package_id IS 'At govinfo: PLAW-119publ21.';

COMMENT ON COLUMN public_laws.congress IS 'That passed it.';

COMMENT ON COLUMN public_laws.doc_number IS 'Its number among that Congress''s.';

COMMENT ON COLUMN public_laws.public_private IS 'public or private.';

COMMENT ON COLUMN public_laws.doc_title IS 'An Act, or Joint Resolution.';

COMMENT ON COLUMN public_laws.official_title IS 'To …, as enacted.';

COMMENT ON COLUMN public_laws.short_title IS 'By which it may be cited, where it says so.';

COMMENT ON COLUMN public_laws.approved_date IS 'Day it became law, ISO 8601.';

COMMENT ON COLUMN public_laws.stat_citation IS 'First page in the Statutes at Large: 139 Stat. 3.';

COMMENT ON COLUMN public_laws.stat_volume IS 'Volume of the Statutes at Large.';

COMMENT ON COLUMN public_laws.stat_page IS 'First page there.';

COMMENT ON COLUMN public_laws.bill_ref IS 'bill:119-hr-2102, of which it was made.';

COMMENT ON COLUMN public_laws.bill_id IS 'bills.id once it is loaded.';

COMMENT ON COLUMN public_laws.processed_date IS 'Day GPO converted the file, ISO 8601.';

CREATE TABLE roll_call_votes (
	id TEXT NOT NULL,
	chamber TEXT NOT NULL,
	congress INTEGER NOT NULL,
	session INTEGER NOT NULL,
	congress_year INTEGER NOT NULL,
	number INTEGER NOT NULL,
	status TEXT NOT NULL,
	vote_date TEXT,
	voted_at TIMESTAMP WITH TIME ZONE,
	modify_date TIMESTAMP WITH TIME ZONE,
	vote_question TEXT,
	vote_type TEXT,
	majority_requirement TEXT,
	vote_result TEXT,
	vote_title TEXT,
	vote_desc TEXT,
	vote_question_text TEXT,
	vote_result_text TEXT,
	vote_correction TEXT,
	majority TEXT,
	legis_num TEXT,
	amendment_num TEXT,
	amendment_author TEXT,
	nomination TEXT,
	tie_breaker TEXT,
	tie_breaker_vote TEXT,
	in_committee BOOLEAN NOT NULL,
	bill_ref TEXT,
	bill_id TEXT,
	yea INTEGER,
	nay INTEGER,
	present INTEGER,
	not_voting INTEGER,
	CONSTRAINT pk_roll_call_votes PRIMARY KEY (id),
	CONSTRAINT fk_roll_call_votes_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT fk_roll_call_votes_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id)
);

CREATE INDEX ix_roll_call_votes_congress_chamber ON roll_call_votes (congress, chamber, number);

CREATE INDEX ix_roll_call_votes_bill_id ON roll_call_votes (bill_id);

COMMENT ON COLUMN roll_call_votes.id IS 'vote:<chamber>/<congress>-<session>/<number>';

COMMENT ON COLUMN roll_call_votes.chamber IS 'house or senate.';

COMMENT ON COLUMN roll_call_votes.congress IS '119.';

COMMENT ON COLUMN roll_call_votes.session IS '1 or 2.';

COMMENT ON COLUMN roll_call_votes.congress_year IS 'Year of the session, which may end in the next January.';

COMMENT ON COLUMN roll_call_votes.number IS 'Of the vote within the session.';

COMMENT ON COLUMN roll_call_votes.status IS 'recorded, or vacated: numbered, but void and without positions.';

COMMENT ON COLUMN roll_call_votes.vote_date IS 'Day of the vote in Washington, ISO 8601.';

COMMENT ON COLUMN roll_call_votes.voted_at IS 'Moment of the vote; NULL where only a day is given.';

COMMENT ON COLUMN roll_call_votes.modify_date IS 'Last change, as the Senate states it.';

COMMENT ON COLUMN roll_call_votes.vote_question IS 'What was put to the vote.';

COMMENT ON COLUMN roll_call_votes.vote_type IS 'House: YEA-AND-NAY, 2/3 RECORDED VOTE, QUORUM …';

COMMENT ON COLUMN roll_call_votes.majority_requirement IS '1/2, 3/5 or 2/3; NULL where none is stated.';

COMMENT ON COLUMN roll_call_votes.vote_result IS 'Passed, Agreed to, Guilty …; in an election the name of the elected.';

COMMENT ON COLUMN roll_call_votes.vote_title IS 'Senate: what the vote is called.';

COMMENT ON COLUMN roll_call_votes.vote_desc IS 'House `vote-desc`, Senate `vote_document_text`: what it was about.';

COMMENT ON COLUMN roll_call_votes.vote_question_text IS 'Senate: question, amendment and document in one line.';

COMMENT ON COLUMN roll_call_votes.vote_result_text IS 'Senate: result and count in one line.';

COMMENT ON COLUMN roll_call_votes.vote_correction IS 'House: note on a correction or on why a vote is void.';

COMMENT ON COLUMN roll_call_votes.majority IS 'House: letter of the majority party.';

COMMENT ON COLUMN roll_call_votes.legis_num IS 'House: H R 22, QUORUM, JOURNAL …';

COMMENT ON COLUMN roll_call_votes.amendment_num IS 'House: number of the amendment.';

COMMENT ON COLUMN roll_call_votes.amendment_author IS 'House: author or description of the amendment.';

COMMENT ON COLUMN roll_call_votes.nomination IS 'Senate: number of the nomination, PN17.';

COMMENT ON COLUMN roll_call_votes.tie_breaker IS 'Senate: who broke the tie.';

COMMENT ON COLUMN roll_call_votes.tie_breaker_vote IS 'Senate: how.';

COMMENT ON COLUMN roll_call_votes.in_committee IS 'House: taken in the Committee of the Whole.';

COMMENT ON COLUMN roll_call_votes.bill_ref IS 'The first one concerned: bill:<congress>-<type>-<number>, whether that bill is loaded or not.';

COMMENT ON COLUMN roll_call_votes.bill_id IS 'bills.id once it is loaded.';

COMMENT ON COLUMN roll_call_votes.yea IS 'Yea, Aye or Guilty, as published; NULL in an election.';

COMMENT ON COLUMN roll_call_votes.nay IS 'Nay, No or Not Guilty, as published; NULL in an election.';

COMMENT ON COLUMN roll_call_votes.present IS 'Present, live pairs included, as published.';

COMMENT ON COLUMN roll_call_votes.not_voting IS 'Not voting or absent, as published.';

CREATE TABLE saps (
	id TEXT NOT NULL,
	document_title TEXT NOT NULL,
	bill TEXT,
	bill_ref TEXT,
	bill_id TEXT,
	bills JSONB NOT NULL,
	congress INTEGER,
	date_issued TEXT,
	file TEXT,
	url TEXT,
	fetched_from_url TEXT,
	date_fetched TEXT,
	source TEXT,
	rescinded TEXT,
	CONSTRAINT pk_saps PRIMARY KEY (id),
	CONSTRAINT fk_saps_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT fk_saps_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id)
);

CREATE INDEX ix_saps_date_issued ON saps (date_issued);

CREATE INDEX ix_saps_bill_id ON saps (bill_id);

COMMENT ON TABLE saps IS 'Statements of Administration Policy.';

COMMENT ON COLUMN saps.id IS 'sap:2025-01-22/<hash>, documents.id: one for each statement and bill.';

COMMENT ON COLUMN saps.document_title IS 'As published, spaces folded.';

COMMENT ON COLUMN saps.bill IS 'The bill this row is about, as the archive codes it: hr2101; NULL for none.';

COMMENT ON COLUMN saps.bill_ref IS 'The same as an id: bill:119-hr-2101.';

COMMENT ON COLUMN saps.bill_id IS 'bills.id once it is loaded.';

COMMENT ON COLUMN saps.bills IS 'All bills of the statement, as coded.';

COMMENT ON COLUMN saps.congress IS 'As stated, else that of date_issued.';

COMMENT ON COLUMN saps.date_issued IS 'ISO day.';

COMMENT ON COLUMN saps.file IS 'The PDF''s place in the archive.';

COMMENT ON COLUMN saps.url IS 'Its page at the American Presidency Project, before 2009.';

COMMENT ON COLUMN saps.fetched_from_url IS 'Where the White House had the PDF.';

COMMENT ON COLUMN saps.date_fetched IS 'When the archive fetched it.';

COMMENT ON COLUMN saps.source IS 'The list it was found in.';

COMMENT ON COLUMN saps.rescinded IS 'What the archive says of its withdrawal; NULL while it is in force.';

CREATE TABLE bill_recorded_votes (
	bill_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	action_ord INTEGER,
	chamber TEXT,
	congress INTEGER,
	session_number INTEGER,
	roll_number INTEGER,
	date TEXT,
	url TEXT,
	full_action_name TEXT,
	vote_ref TEXT,
	vote_id TEXT,
	CONSTRAINT pk_bill_recorded_votes PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_recorded_votes_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE,
	CONSTRAINT fk_bill_recorded_votes_vote_id FOREIGN KEY(vote_id) REFERENCES roll_call_votes (id)
);

CREATE INDEX ix_bill_recorded_votes_vote_id ON bill_recorded_votes (vote_id);

COMMENT ON TABLE bill_recorded_votes IS 'Roll calls on a bill.';

COMMENT ON COLUMN bill_recorded_votes.bill_id IS 'bills.id';

COMMENT ON COLUMN bill_recorded_votes.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN bill_recorded_votes.action_ord IS 'Of bill_actions; NULL before format 3.0.0, which does not tie them.';

COMMENT ON COLUMN bill_recorded_votes.chamber IS 'House or Senate.';

COMMENT ON COLUMN bill_recorded_votes.congress IS '119.';

COMMENT ON COLUMN bill_recorded_votes.session_number IS '1 or 2.';

COMMENT ON COLUMN bill_recorded_votes.roll_number IS 'Within the session.';

COMMENT ON COLUMN bill_recorded_votes.date IS 'ISO moment.';

COMMENT ON COLUMN bill_recorded_votes.url IS 'The chamber''s own record.';

COMMENT ON COLUMN bill_recorded_votes.full_action_name IS 'What was voted on; before format 3.0.0.';

COMMENT ON COLUMN bill_recorded_votes.vote_ref IS 'vote:house/119-1/362.';

COMMENT ON COLUMN bill_recorded_votes.vote_id IS 'roll_call_votes.id once it is loaded.';

CREATE TABLE bill_committee_reports (
	bill_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	citation TEXT,
	report_ref TEXT,
	report_id TEXT,
	CONSTRAINT pk_bill_committee_reports PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_committee_reports_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE,
	CONSTRAINT fk_bill_committee_reports_report_id FOREIGN KEY(report_id) REFERENCES committee_reports (id)
);

CREATE INDEX ix_bill_committee_reports_report_id ON bill_committee_reports (report_id);

COMMENT ON TABLE bill_committee_reports IS 'Committee reports on a bill.';

COMMENT ON COLUMN bill_committee_reports.bill_id IS 'bills.id';

COMMENT ON COLUMN bill_committee_reports.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN bill_committee_reports.citation IS 'H. Rept. 119-100, Part 1.';

COMMENT ON COLUMN bill_committee_reports.report_ref IS 'crpt:CRPT-119hrpt100.';

COMMENT ON COLUMN bill_committee_reports.report_id IS 'committee_reports.id once it is loaded.';

CREATE TABLE bill_laws (
	bill_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	type TEXT,
	number TEXT,
	law_ref TEXT,
	law_id TEXT,
	text_date TEXT,
	text_url TEXT,
	CONSTRAINT pk_bill_laws PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_laws_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE,
	CONSTRAINT fk_bill_laws_law_id FOREIGN KEY(law_id) REFERENCES public_laws (id)
);

CREATE INDEX ix_bill_laws_law_id ON bill_laws (law_id);

COMMENT ON TABLE bill_laws IS 'Laws a bill became.';

COMMENT ON COLUMN bill_laws.bill_id IS 'bills.id';

COMMENT ON COLUMN bill_laws.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN bill_laws.type IS 'Public Law or Private Law.';

COMMENT ON COLUMN bill_laws.number IS '119-21.';

COMMENT ON COLUMN bill_laws.law_ref IS 'plaw:119-21.';

COMMENT ON COLUMN bill_laws.law_id IS 'public_laws.id once it is loaded.';

COMMENT ON COLUMN bill_laws.text_date IS 'ISO date, of the law''s text among the bill''s versions.';

COMMENT ON COLUMN bill_laws.text_url IS 'The law''s text, as the list of the bill''s versions gives it.';

CREATE TABLE bill_cost_estimates (
	bill_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	pub_date TEXT,
	title TEXT,
	url TEXT,
	description TEXT,
	publication_ref TEXT,
	publication_id TEXT,
	CONSTRAINT pk_bill_cost_estimates PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_cost_estimates_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE,
	CONSTRAINT fk_bill_cost_estimates_publication_id FOREIGN KEY(publication_id) REFERENCES cbo_publications (id)
);

CREATE INDEX ix_bill_cost_estimates_publication_id ON bill_cost_estimates (publication_id);

COMMENT ON TABLE bill_cost_estimates IS 'Cost estimates of the Congressional Budget Office for a bill.';

COMMENT ON COLUMN bill_cost_estimates.bill_id IS 'bills.id';

COMMENT ON COLUMN bill_cost_estimates.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN bill_cost_estimates.pub_date IS 'ISO moment.';

COMMENT ON COLUMN bill_cost_estimates.title IS 'H.R. 1, as ordered reported.';

COMMENT ON COLUMN bill_cost_estimates.url IS 'The page at cbo.gov.';

COMMENT ON COLUMN bill_cost_estimates.description IS 'What was estimated.';

COMMENT ON COLUMN bill_cost_estimates.publication_ref IS 'cbo:61234.';

COMMENT ON COLUMN bill_cost_estimates.publication_id IS 'cbo_publications.id once it is loaded.';

CREATE TABLE committee_report_bills (
	report_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	bill_ref TEXT,
	bill_id TEXT,
	congress INTEGER,
	type TEXT,
	number INTEGER,
	context TEXT,
	CONSTRAINT pk_committee_report_bills PRIMARY KEY (report_id, ord),
	CONSTRAINT fk_committee_report_bills_report_id FOREIGN KEY(report_id) REFERENCES committee_reports (id) ON DELETE CASCADE,
	CONSTRAINT fk_committee_report_bills_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id)
);

CREATE INDEX ix_committee_report_bills_bill_id ON committee_report_bills (bill_id);

COMMENT ON TABLE committee_report_bills IS 'Bills a report names; the one reported is often listed twice.';

COMMENT ON COLUMN committee_report_bills.report_id IS 'committee_reports.id';

COMMENT ON COLUMN committee_report_bills.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN committee_report_bills.bill_ref IS 'bill:<congress>-<type>-<number>';

COMMENT ON COLUMN committee_report_bills.bill_id IS 'bills.id once it is loaded.';

COMMENT ON COLUMN committee_report_bills.congress IS 'Of the bill.';

COMMENT ON COLUMN committee_report_bills.type IS 'HR, S, HJRES, …';

COMMENT ON COLUMN committee_report_bills.number IS 'Of the bill.';

COMMENT ON COLUMN committee_report_bills.context IS 'PRIMARY: it is reported; OTHER: it is mentioned.';

CREATE TABLE committee_report_committees (
	report_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	committee_ref TEXT,
	committee_id TEXT,
	name TEXT NOT NULL,
	authority_id TEXT,
	short_name TEXT,
	chamber TEXT,
	type TEXT,
	subcommittees JSONB NOT NULL,
	CONSTRAINT pk_committee_report_committees PRIMARY KEY (report_id, ord),
	CONSTRAINT fk_committee_report_committees_report_id FOREIGN KEY(report_id) REFERENCES committee_reports (id) ON DELETE CASCADE,
	CONSTRAINT fk_committee_report_committees_committee_id FOREIGN KEY(committee_id) REFERENCES committees (id)
);

CREATE INDEX ix_committee_report_committees_committee_id ON committee_report_committees (committee_id);

COMMENT ON TABLE committee_report_committees IS 'Committees that report.';

COMMENT ON COLUMN committee_report_committees.report_id IS 'committee_reports.id';

COMMENT ON COLUMN committee_report_committees.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN committee_report_committees.committee_ref IS 'committee:<code>';

COMMENT ON COLUMN committee_report_committees.committee_id IS 'committees.id once it is loaded.';

COMMENT ON COLUMN committee_report_committees.name IS 'Committee on Rules.';

COMMENT ON COLUMN committee_report_committees.authority_id IS 'hsru00; NULL for a committee the authority file does not know.';

COMMENT ON COLUMN committee_report_committees.short_name IS 'Rules.';

COMMENT ON COLUMN committee_report_committees.chamber IS 'H, S or J.';

COMMENT ON COLUMN committee_report_committees.type IS 'S standing, L select, P special, J joint, T task force, O other.';

COMMENT ON COLUMN committee_report_committees.subcommittees IS 'Names, where the report has any.';

CREATE TABLE public_law_sections (
	law_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	num TEXT,
	heading TEXT,
	identifier TEXT,
	page TEXT,
	CONSTRAINT pk_public_law_sections PRIMARY KEY (law_id, ord),
	CONSTRAINT fk_public_law_sections_law_id FOREIGN KEY(law_id) REFERENCES public_laws (id) ON DELETE CASCADE
);

COMMENT ON TABLE public_law_sections IS 'Sections of a law; those it quotes to put them into other laws are left out.';

COMMENT ON COLUMN public_law_sections.law_id IS 'public_laws.id';

COMMENT ON COLUMN public_law_sections.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN public_law_sections.num IS 'As numbered: 101; NULL for the section without a number.';

COMMENT ON COLUMN public_law_sections.heading IS 'As printed.';

COMMENT ON COLUMN public_law_sections.identifier IS 'GPO''s own: /us/pl/119/21/s101; NULL before 2020 or so.';

COMMENT ON COLUMN public_law_sections.page IS 'Page of the Statutes at Large it begins on.';

CREATE TABLE public_law_usc_references (
	law_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	href TEXT NOT NULL,
	text TEXT NOT NULL,
	title TEXT,
	section TEXT,
	is_note BOOLEAN NOT NULL,
	CONSTRAINT pk_public_law_usc_references PRIMARY KEY (law_id, ord),
	CONSTRAINT fk_public_law_usc_references_law_id FOREIGN KEY(law_id) REFERENCES public_laws (id) ON DELETE CASCADE
);

CREATE INDEX ix_public_law_usc_references_section ON public_law_usc_references (section);

COMMENT ON TABLE public_law_usc_references IS 'Where the Code holds parts of a law, as its sidenotes say.';

COMMENT ON COLUMN public_law_usc_references.law_id IS 'public_laws.id';

COMMENT ON COLUMN public_law_usc_references.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN public_law_usc_references.href IS '/us/usc/t42/s1861.';

COMMENT ON COLUMN public_law_usc_references.text IS 'As printed in the margin: 42 USC 1861 note.';

COMMENT ON COLUMN public_law_usc_references.title IS 'Title of the Code, its appendix with a letter: 5a.';

COMMENT ON COLUMN public_law_usc_references.section IS 'Section of the Code; NULL for a whole title.';

COMMENT ON COLUMN public_law_usc_references.is_note IS 'Classified as a note to that section.';

CREATE TABLE public_law_history (
	law_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	heading TEXT,
	subheading TEXT,
	text TEXT NOT NULL,
	CONSTRAINT pk_public_law_history PRIMARY KEY (law_id, ord),
	CONSTRAINT fk_public_law_history_law_id FOREIGN KEY(law_id) REFERENCES public_laws (id) ON DELETE CASCADE
);

COMMENT ON TABLE public_law_history IS 'Legislative history, entry by entry, as printed at the end of a law.';

COMMENT ON COLUMN public_law_history.law_id IS 'public_laws.id';

COMMENT ON COLUMN public_law_history.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN public_law_history.heading IS 'HOUSE REPORTS, CONGRESSIONAL RECORD, …';

COMMENT ON COLUMN public_law_history.subheading IS 'Volume and year, where entries are parted by them.';

COMMENT ON COLUMN public_law_history.text IS 'Oct. 9, considered and passed House.';

CREATE TABLE statute_compilations (
	id TEXT NOT NULL,
	file_id INTEGER NOT NULL,
	title TEXT NOT NULL,
	citable_as TEXT,
	approved_date TEXT,
	amended_date TEXT,
	processed_date TEXT,
	law_ref TEXT,
	law_id TEXT,
	through_law_ref TEXT,
	through_law_id TEXT,
	CONSTRAINT pk_statute_compilations PRIMARY KEY (id),
	CONSTRAINT fk_statute_compilations_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT fk_statute_compilations_law_id FOREIGN KEY(law_id) REFERENCES public_laws (id),
	CONSTRAINT fk_statute_compilations_through_law_id FOREIGN KEY(through_law_id) REFERENCES public_laws (id)
);

CREATE INDEX ix_statute_compilations_through_law_id ON statute_compilations (through_law_id);

CREATE INDEX ix_statute_compilations_law_id ON statute_compilations (law_id);

COMMENT ON TABLE statute_compilations IS 'Statutes with all amendments taken in, as the House Legislative Counsel keeps them.';

COMMENT ON COLUMN statute_compilations.id IS 'comps:COMPS-1088.';

COMMENT ON COLUMN statute_compilations.file_id IS 'Number of the House Legislative Counsel.';

COMMENT ON COLUMN statute_compilations.title IS 'Of the act, in its own spelling.';

COMMENT ON COLUMN statute_compilations.citable_as IS 'The law it compiles, as stated: Public Law 84–885, as amended.';

COMMENT ON COLUMN statute_compilations.approved_date IS 'Day the act became law, ISO 8601.';

COMMENT ON COLUMN statute_compilations.amended_date IS 'Day the last amendment taken in became law, ISO 8601.';

COMMENT ON COLUMN statute_compilations.processed_date IS 'Day GPO converted the file, ISO 8601.';

COMMENT ON COLUMN statute_compilations.law_ref IS 'plaw:84-885, which it compiles.';

COMMENT ON COLUMN statute_compilations.law_id IS 'public_laws.id once it is loaded.';

COMMENT ON COLUMN statute_compilations.through_law_ref IS 'plaw:116-326, the last amendment taken in.';

COMMENT ON COLUMN statute_compilations.through_law_id IS 'public_laws.id once it is loaded.';

CREATE TABLE vote_totals (
	vote_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	votes INTEGER,
	yea INTEGER,
	nay INTEGER,
	present INTEGER,
	not_voting INTEGER,
	CONSTRAINT pk_vote_totals PRIMARY KEY (vote_id, ord),
	CONSTRAINT fk_vote_totals_vote_id FOREIGN KEY(vote_id) REFERENCES roll_call_votes (id) ON DELETE CASCADE
);

COMMENT ON COLUMN vote_totals.vote_id IS 'roll_call_votes.id';

COMMENT ON COLUMN vote_totals.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN vote_totals.kind IS 'party or candidate; the House publishes them, the Senate does not.';

COMMENT ON COLUMN vote_totals.name IS 'Republican; in an election a candidate, Present or Not Voting.';

COMMENT ON COLUMN vote_totals.votes IS 'For a candidate.';

COMMENT ON COLUMN vote_totals.yea IS 'Yea, Aye or Guilty, as published; NULL in an election.';

COMMENT ON COLUMN vote_totals.nay IS 'Nay, No or Not Guilty, as published; NULL in an election.';

COMMENT ON COLUMN vote_totals.present IS 'Present, live pairs included, as published.';

COMMENT ON COLUMN vote_totals.not_voting IS 'Not voting or absent, as published.';

CREATE TABLE vote_documents (
	vote_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	document_congress INTEGER,
	document_type TEXT,
	document_number TEXT,
	document_name TEXT,
	document_title TEXT,
	document_short_title TEXT,
	question TEXT,
	result TEXT,
	bill_ref TEXT,
	bill_id TEXT,
	CONSTRAINT pk_vote_documents PRIMARY KEY (vote_id, ord),
	CONSTRAINT fk_vote_documents_vote_id FOREIGN KEY(vote_id) REFERENCES roll_call_votes (id) ON DELETE CASCADE,
	CONSTRAINT fk_vote_documents_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id)
);

CREATE INDEX ix_vote_documents_bill_id ON vote_documents (bill_id);

COMMENT ON TABLE vote_documents IS 'Senate: what a vote was about, nominations included; several if en bloc.';

COMMENT ON COLUMN vote_documents.vote_id IS 'roll_call_votes.id';

COMMENT ON COLUMN vote_documents.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN vote_documents.document_congress IS 'The vote''s own where none is stated.';

COMMENT ON COLUMN vote_documents.document_type IS 'H.R., S.J.Res., PN, Treaty Doc. …';

COMMENT ON COLUMN vote_documents.document_number IS '1; with a hyphen for a part of a nomination: 54-11.';

COMMENT ON COLUMN vote_documents.document_name IS 'H.R. 1, PN527.';

COMMENT ON COLUMN vote_documents.document_title IS 'Official title.';

COMMENT ON COLUMN vote_documents.document_short_title IS 'Short title.';

COMMENT ON COLUMN vote_documents.question IS 'Of one of several matters voted on en bloc.';

COMMENT ON COLUMN vote_documents.result IS 'Of one of several matters voted on en bloc.';

COMMENT ON COLUMN vote_documents.bill_ref IS 'bill:<congress>-<type>-<number>, whether that bill is loaded or not.';

COMMENT ON COLUMN vote_documents.bill_id IS 'bills.id once it is loaded.';

CREATE TABLE vote_amendments (
	vote_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	amendment_number TEXT,
	amendment_to_amendment_number TEXT,
	amendment_to_amendment_to_amendment_number TEXT,
	amendment_to_document_number TEXT,
	amendment_to_document_short_title TEXT,
	amendment_purpose TEXT,
	bill_ref TEXT,
	bill_id TEXT,
	CONSTRAINT pk_vote_amendments PRIMARY KEY (vote_id, ord),
	CONSTRAINT fk_vote_amendments_vote_id FOREIGN KEY(vote_id) REFERENCES roll_call_votes (id) ON DELETE CASCADE,
	CONSTRAINT fk_vote_amendments_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id)
);

CREATE INDEX ix_vote_amendments_bill_id ON vote_amendments (bill_id);

COMMENT ON TABLE vote_amendments IS 'Senate: the amendments a vote was about.';

COMMENT ON COLUMN vote_amendments.vote_id IS 'roll_call_votes.id';

COMMENT ON COLUMN vote_amendments.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN vote_amendments.amendment_number IS 'S.Amdt. 1852.';

COMMENT ON COLUMN vote_amendments.amendment_to_amendment_number IS 'The amendment it amends.';

COMMENT ON COLUMN vote_amendments.amendment_to_amendment_to_amendment_number IS 'The one that one amends.';

COMMENT ON COLUMN vote_amendments.amendment_to_document_number IS 'H.R. 1.';

COMMENT ON COLUMN vote_amendments.amendment_to_document_short_title IS 'Short title of that document.';

COMMENT ON COLUMN vote_amendments.amendment_purpose IS 'Statement of purpose.';

COMMENT ON COLUMN vote_amendments.bill_ref IS 'The amended bill: bill:<congress>-<type>-<number>, whether that bill is loaded or not.';

COMMENT ON COLUMN vote_amendments.bill_id IS 'bills.id once it is loaded.';

CREATE TABLE vote_positions (
	vote_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	member TEXT NOT NULL,
	first_name TEXT,
	party TEXT,
	state TEXT,
	position TEXT NOT NULL,
	counted_as TEXT,
	name_id TEXT,
	lis_member_id TEXT,
	legislator_ref TEXT,
	legislator_id TEXT,
	CONSTRAINT pk_vote_positions PRIMARY KEY (vote_id, ord),
	CONSTRAINT fk_vote_positions_vote_id FOREIGN KEY(vote_id) REFERENCES roll_call_votes (id) ON DELETE CASCADE,
	CONSTRAINT fk_vote_positions_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id)
);

CREATE INDEX ix_vote_positions_legislator_id_legislator_ref ON vote_positions (legislator_id, legislator_ref);

COMMENT ON COLUMN vote_positions.vote_id IS 'roll_call_votes.id';

COMMENT ON COLUMN vote_positions.ord IS 'Place in the publisher''s list.';

COMMENT ON COLUMN vote_positions.member IS 'As printed: Lewis (GA), Alexander (R-TN).';

COMMENT ON COLUMN vote_positions.first_name IS 'Senate only.';

COMMENT ON COLUMN vote_positions.party IS 'Letter, as printed: R, D, I, ID.';

COMMENT ON COLUMN vote_positions.state IS 'As printed; XX for a delegate in older files of the House.';

COMMENT ON COLUMN vote_positions.position IS 'As printed: Aye, Not Voting; in an election a candidate''s name.';

COMMENT ON COLUMN vote_positions.counted_as IS 'yea, nay, present, not_voting; NULL for a candidate.';

COMMENT ON COLUMN vote_positions.name_id IS 'House: the member''s bioguide id; since 2003.';

COMMENT ON COLUMN vote_positions.lis_member_id IS 'Senate: the member''s id there, S289.';

COMMENT ON COLUMN vote_positions.legislator_ref IS 'legislator:<bioguide>, or the alias `lis <id>` of a senator; NULL before 2003.';

COMMENT ON COLUMN vote_positions.legislator_id IS 'legislators.id once it is loaded.';

CREATE TABLE chunk_index (
    id INTEGER PRIMARY KEY REFERENCES document_chunk_buffer (id) ON DELETE CASCADE,
    words TSVECTOR NOT NULL
);

CREATE INDEX ix_chunk_index_words ON chunk_index USING gin (words);

CREATE FUNCTION ingestion_runs_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a finished run does not change its status'
        USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER ingestion_runs_moves BEFORE UPDATE OF status ON ingestion_runs
FOR EACH ROW WHEN (OLD.status <> 'running' AND NEW.status <> OLD.status)
EXECUTE FUNCTION ingestion_runs_moves();

CREATE FUNCTION check_upload_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.status NOT IN ('uploaded', 'parse_queued') THEN
            RAISE EXCEPTION 'an upload job begins as uploaded or parse_queued'
                USING ERRCODE = 'check_violation';
        END IF;
    ELSIF NEW.status <> OLD.status
        AND OLD.status || ' ' || NEW.status NOT IN ('uploaded parse_queued', 'uploaded failed_parse', 'parse_queued parsed', 'parse_queued failed_parse', 'parsed parse_validated', 'parsed failed_parse', 'parse_validated chunking', 'parse_validated failed_chunking', 'chunking chunks_stored', 'chunking failed_chunking', 'chunks_stored embedding_queued', 'chunks_stored failed_embedding', 'embedding_queued embedding_in_progress', 'embedding_queued failed_embedding', 'embedding_in_progress embeddings_stored', 'embedding_in_progress failed_embedding', 'embeddings_stored complete', 'embeddings_stored failed_embedding', 'failed_parse uploaded', 'failed_parse parse_queued', 'failed_chunking parse_validated', 'failed_embedding chunks_stored') THEN
        RAISE EXCEPTION 'an upload job cannot move like this: % to %',
            OLD.status, NEW.status USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION record_upload_move() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before text := NULL;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        before := OLD.status;
    END IF;
    IF before IS DISTINCT FROM NEW.status THEN
        INSERT INTO upload_events (job_id, from_status, to_status, at, "by", why)
        VALUES (NEW.job_id, before, NEW.status, NEW.updated_at, NEW.moved_by, NEW.moved_why);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER upload_jobs_move BEFORE INSERT OR UPDATE ON upload_jobs
FOR EACH ROW EXECUTE FUNCTION check_upload_move();

CREATE TRIGGER upload_jobs_moved AFTER INSERT OR UPDATE OF status ON upload_jobs
FOR EACH ROW EXECUTE FUNCTION record_upload_move();

INSERT INTO alembic_version VALUES ('0025')
