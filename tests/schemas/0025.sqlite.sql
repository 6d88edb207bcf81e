CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE documents (
	id TEXT NOT NULL,
	uid VARCHAR(36) NOT NULL,
	source TEXT NOT NULL,
	kind TEXT NOT NULL,
	title TEXT NOT NULL,
	summary TEXT,
	unit TEXT,
	owner VARCHAR(36),
	source_url TEXT NOT NULL,
	source_org TEXT NOT NULL,
	published_at TEXT,
	retrieved_at VARCHAR(24) NOT NULL,
	raw_path TEXT NOT NULL,
	raw_sha256 TEXT NOT NULL,
	citation_string TEXT NOT NULL,
	body_raw_path TEXT,
	body_raw_format TEXT,
	body_raw_sha256 TEXT,
	body_text TEXT,
	body_text_sha256 TEXT,
	body_normalized_at VARCHAR(24),
	body_normalizer_version TEXT,
	body_map JSON,
	content_sha256 TEXT NOT NULL,
	recipe TEXT NOT NULL,
	task_key TEXT,
	updated_at VARCHAR(24) NOT NULL,
	gone_at VARCHAR(24),
	CONSTRAINT pk_documents PRIMARY KEY (id),
	CONSTRAINT ck_documents_cited CHECK (citation_string <> ''),
	CONSTRAINT ck_documents_provenance CHECK (source_url <> '' AND source_org <> ''),
	CONSTRAINT ck_documents_body_raw_format CHECK (body_raw_format IS NULL OR body_raw_format IN ('html', 'xml', 'pdf', 'text')),
	CONSTRAINT uq_documents_uid UNIQUE (uid)
);

CREATE INDEX ix_documents_source_task_key ON documents (source, task_key);

CREATE INDEX ix_documents_unit ON documents (unit);

CREATE INDEX ix_documents_citation_string ON documents (citation_string);

CREATE INDEX ix_documents_body_normalizer_version ON documents (body_normalizer_version);

CREATE INDEX ix_documents_gone_at ON documents (gone_at) WHERE gone_at IS NOT NULL;

CREATE INDEX ix_documents_source_published_at ON documents (source, published_at);

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
	planned_at VARCHAR(24) NOT NULL,
	completed_at VARCHAR(24),
	CONSTRAINT pk_code_units PRIMARY KEY (id),
	CONSTRAINT ck_code_units_state CHECK (state IN ('planned', 'partial', 'complete'))
);

CREATE INDEX ix_code_units_source_unit ON code_units (source, unit, version);

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

CREATE TABLE document_chunk_buffer (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	chunk_id VARCHAR(36) NOT NULL,
	document_id VARCHAR(36) NOT NULL,
	chunk_ord INTEGER NOT NULL,
	chunker_name TEXT NOT NULL,
	chunker_version TEXT NOT NULL,
	chunk_sha TEXT NOT NULL,
	text TEXT NOT NULL,
	meta JSON NOT NULL,
	created_at VARCHAR(24) NOT NULL,
	CONSTRAINT uq_document_chunk_buffer_chunk_id UNIQUE (chunk_id)
);

CREATE INDEX ix_document_chunk_buffer_document_id ON document_chunk_buffer (document_id, chunk_ord);

CREATE INDEX ix_document_chunk_buffer_chunk_sha ON document_chunk_buffer (chunk_sha);

CREATE TABLE embedding_models (
	name TEXT NOT NULL,
	version TEXT NOT NULL,
	dims INTEGER NOT NULL,
	price FLOAT NOT NULL,
	CONSTRAINT pk_embedding_models PRIMARY KEY (name, version)
);

CREATE TABLE webhook_nonces (
	webhook_id TEXT NOT NULL,
	received_at VARCHAR(24) NOT NULL,
	CONSTRAINT pk_webhook_nonces PRIMARY KEY (webhook_id)
);

CREATE INDEX ix_webhook_nonces_received_at ON webhook_nonces (received_at);

CREATE TABLE users (
	id VARCHAR(36) NOT NULL,
	name TEXT NOT NULL,
	created_at VARCHAR(24) NOT NULL,
	CONSTRAINT pk_users PRIMARY KEY (id),
	CONSTRAINT ck_users_named CHECK (name <> ''),
	CONSTRAINT uq_users_name UNIQUE (name)
);

CREATE TABLE ingestion_runs (
	id VARCHAR(36) NOT NULL,
	source TEXT NOT NULL,
	mode TEXT NOT NULL,
	status TEXT NOT NULL,
	started_at VARCHAR(24) NOT NULL,
	finished_at VARCHAR(24),
	discovered_count INTEGER DEFAULT 0 NOT NULL,
	fetched_count INTEGER DEFAULT 0 NOT NULL,
	parsed_count INTEGER DEFAULT 0 NOT NULL,
	inserted_count INTEGER DEFAULT 0 NOT NULL,
	updated_count INTEGER DEFAULT 0 NOT NULL,
	skipped_count INTEGER DEFAULT 0 NOT NULL,
	error_count INTEGER DEFAULT 0 NOT NULL,
	gone_count INTEGER DEFAULT 0 NOT NULL,
	config JSON NOT NULL,
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
	last_run_at VARCHAR(24),
	last_success_at VARCHAR(24),
	last_seen_key TEXT,
	custom JSON NOT NULL,
	CONSTRAINT pk_ingestion_source_state PRIMARY KEY (source)
);

CREATE TABLE ingestion_inputs (
	source TEXT NOT NULL,
	task_key TEXT NOT NULL,
	input_sha256 TEXT NOT NULL,
	recipe TEXT NOT NULL,
	fingerprint TEXT,
	records INTEGER NOT NULL,
	validated_at VARCHAR(24) NOT NULL,
	CONSTRAINT pk_ingestion_inputs PRIMARY KEY (source, task_key)
);

CREATE TABLE fetched_files (
	source TEXT NOT NULL,
	url TEXT NOT NULL,
	blob_key TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	size INTEGER NOT NULL,
	media_type TEXT,
	etag TEXT,
	last_modified TEXT,
	retrieved_at VARCHAR(24) NOT NULL,
	CONSTRAINT pk_fetched_files PRIMARY KEY (source, url)
);

CREATE INDEX ix_fetched_files_blob_key ON fetched_files (blob_key);

CREATE TABLE ingestion_normalization_queue (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	table_name TEXT NOT NULL,
	record_id TEXT NOT NULL,
	raw_path TEXT NOT NULL,
	raw_format TEXT NOT NULL,
	input_sha TEXT NOT NULL,
	enqueued_at VARCHAR(24) NOT NULL,
	attempts INTEGER DEFAULT 0 NOT NULL,
	last_attempt_at VARCHAR(24),
	last_error TEXT,
	lease_owner TEXT,
	lease_until VARCHAR(24),
	CONSTRAINT uq_ingestion_normalization_queue_table_name_record_id UNIQUE (table_name, record_id)
);

CREATE INDEX ingestion_normalization_queue_pending ON ingestion_normalization_queue (id) WHERE attempts < 5;

CREATE TABLE ingestion_embedding_queue (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	table_name TEXT NOT NULL,
	record_id TEXT NOT NULL,
	input_sha TEXT NOT NULL,
	enqueued_at VARCHAR(24) NOT NULL,
	attempts INTEGER DEFAULT 0 NOT NULL,
	last_attempt_at VARCHAR(24),
	last_error TEXT,
	lease_owner TEXT,
	lease_until VARCHAR(24),
	CONSTRAINT uq_ingestion_embedding_queue_table_name_record_id UNIQUE (table_name, record_id)
);

CREATE INDEX ingestion_embedding_queue_pending ON ingestion_embedding_queue (id) WHERE attempts < 5;

CREATE TABLE ingestion_citation_queue (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	table_name TEXT NOT NULL,
	record_id TEXT NOT NULL,
	input_sha TEXT NOT NULL,
	enqueued_at VARCHAR(24) NOT NULL,
	attempts INTEGER DEFAULT 0 NOT NULL,
	last_attempt_at VARCHAR(24),
	last_error TEXT,
	lease_owner TEXT,
	lease_until VARCHAR(24),
	CONSTRAINT uq_ingestion_citation_queue_table_name_record_id UNIQUE (table_name, record_id)
);

CREATE INDEX ingestion_citation_queue_pending ON ingestion_citation_queue (id) WHERE attempts < 5;

CREATE TABLE ingestion_commands (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	command TEXT NOT NULL,
	source TEXT,
	args JSON NOT NULL,
	requested_by TEXT NOT NULL,
	requested_at VARCHAR(24) NOT NULL,
	claimed_by TEXT,
	lease_until VARCHAR(24),
	finished_at VARCHAR(24),
	outcome TEXT,
	run_id VARCHAR(36)
);

CREATE INDEX ix_ingestion_commands_open ON ingestion_commands (id) WHERE finished_at IS NULL;

CREATE TABLE ingestion_audits (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	source TEXT NOT NULL,
	audited_at VARCHAR(24) NOT NULL,
	requested_by TEXT NOT NULL,
	expected INTEGER NOT NULL,
	missing INTEGER NOT NULL,
	open_errors INTEGER NOT NULL,
	findings JSON NOT NULL
);

CREATE INDEX ix_ingestion_audits_source ON ingestion_audits (source, audited_at);

CREATE TABLE ingestion_leases (
	name TEXT NOT NULL,
	owner TEXT NOT NULL,
	lease_until VARCHAR(24) NOT NULL,
	CONSTRAINT pk_ingestion_leases PRIMARY KEY (name)
);

CREATE TABLE table_versions (
	source TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	CONSTRAINT pk_table_versions PRIMARY KEY (source)
);

CREATE TABLE websites (
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	base_url TEXT NOT NULL,
	description TEXT,
	crawl_frequency TEXT,
	enabled BOOLEAN NOT NULL,
	rendered BOOLEAN NOT NULL,
	output TEXT,
	standing JSON,
	updated_at VARCHAR(24) NOT NULL,
	CONSTRAINT websites_pkey PRIMARY KEY (id)
);

CREATE TABLE site_addresses (
	website_id TEXT NOT NULL,
	"key" TEXT NOT NULL,
	url TEXT NOT NULL,
	kind TEXT NOT NULL,
	state TEXT NOT NULL,
	crawl_id VARCHAR(36) NOT NULL,
	depth INTEGER NOT NULL,
	turn INTEGER NOT NULL,
	place BIGINT NOT NULL,
	trail JSON NOT NULL,
	found_on TEXT,
	text TEXT,
	organization TEXT,
	period TEXT,
	origin TEXT,
	error TEXT,
	updated_at VARCHAR(24) NOT NULL,
	CONSTRAINT site_addresses_pkey PRIMARY KEY (website_id, "key"),
	CONSTRAINT kind CHECK (kind IN ('page', 'pdf'))
);

CREATE INDEX ix_site_addresses_next ON site_addresses (website_id, kind, state, depth, place);

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

CREATE TABLE policy_areas (
	name TEXT NOT NULL,
	ord INTEGER NOT NULL,
	task_key TEXT,
	CONSTRAINT pk_policy_areas PRIMARY KEY (name)
);

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

CREATE TABLE document_versions (
	document_id TEXT NOT NULL,
	content_sha256 TEXT NOT NULL,
	raw_sha256 TEXT NOT NULL,
	archive_key TEXT NOT NULL,
	body_raw_sha256 TEXT,
	body_archive_key TEXT,
	body_text_sha256 TEXT,
	first_seen_at VARCHAR(24) NOT NULL,
	last_seen_at VARCHAR(24) NOT NULL,
	source TEXT,
	CONSTRAINT pk_document_versions PRIMARY KEY (document_id, content_sha256),
	CONSTRAINT fk_document_versions_document_id FOREIGN KEY(document_id) REFERENCES documents (id)
);

CREATE INDEX ix_document_versions_source ON document_versions (source, first_seen_at, document_id);

CREATE INDEX ix_document_versions_first_seen_at ON document_versions (first_seen_at, document_id);

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
	locator JSON NOT NULL,
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

CREATE TABLE document_vector_buffer (
	document_id VARCHAR(36) NOT NULL,
	chunk_id VARCHAR(36) NOT NULL,
	embed_model TEXT NOT NULL,
	embed_version TEXT NOT NULL,
	vector BLOB NOT NULL,
	vector_sha TEXT NOT NULL,
	created_at VARCHAR(24) NOT NULL,
	CONSTRAINT pk_document_vector_buffer PRIMARY KEY (chunk_id, embed_model, embed_version),
	CONSTRAINT fk_document_vector_buffer_chunk_id FOREIGN KEY(chunk_id) REFERENCES document_chunk_buffer (chunk_id) ON DELETE CASCADE
);

CREATE INDEX ix_document_vector_buffer_document_id ON document_vector_buffer (document_id, embed_model, embed_version);

CREATE TABLE embedding_generations (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	version TEXT NOT NULL,
	embedder TEXT NOT NULL,
	created_at VARCHAR(24) NOT NULL,
	filled_at VARCHAR(24),
	CONSTRAINT fk_embedding_generations_name_version FOREIGN KEY(name, version) REFERENCES embedding_models (name, version),
	CONSTRAINT uq_embedding_generations_name_version UNIQUE (name, version)
);

CREATE TABLE upload_jobs (
	job_id VARCHAR(36) NOT NULL,
	user_id VARCHAR(36) NOT NULL,
	document_id VARCHAR(36) NOT NULL,
	status TEXT NOT NULL,
	name TEXT NOT NULL,
	format TEXT NOT NULL,
	bytes BIGINT NOT NULL,
	raw_sha256 TEXT NOT NULL,
	raw_path TEXT NOT NULL,
	parser TEXT NOT NULL,
	submission JSON,
	parsed_path TEXT,
	parsed_sha256 TEXT,
	parsed_bytes BIGINT,
	parsed_by TEXT,
	chunks_version TEXT NOT NULL,
	embed_model TEXT,
	embed_version TEXT,
	progress JSON,
	retry_count INTEGER DEFAULT 0 NOT NULL,
	next_attempt_at VARCHAR(24),
	takeovers INTEGER DEFAULT 0 NOT NULL,
	reprocessed INTEGER DEFAULT 0 NOT NULL,
	last_error JSON,
	lease_owner TEXT,
	lease_until VARCHAR(24),
	moved_by TEXT NOT NULL,
	moved_why TEXT NOT NULL,
	arrived_at VARCHAR(24),
	parsed_at VARCHAR(24),
	chunked_at VARCHAR(24),
	first_embedded_at VARCHAR(24),
	completed_at VARCHAR(24),
	created_at VARCHAR(24) NOT NULL,
	updated_at VARCHAR(24) NOT NULL,
	parsed_map JSON,
	CONSTRAINT pk_upload_jobs PRIMARY KEY (job_id),
	CONSTRAINT ck_upload_jobs_status CHECK (status IN ('uploaded', 'parse_queued', 'parsed', 'parse_validated', 'chunking', 'chunks_stored', 'embedding_queued', 'embedding_in_progress', 'embeddings_stored', 'complete', 'failed_parse', 'failed_chunking', 'failed_embedding')),
	CONSTRAINT ck_upload_jobs_counts CHECK (bytes >= 0 AND retry_count >= 0),
	CONSTRAINT fk_upload_jobs_user_id FOREIGN KEY(user_id) REFERENCES users (id)
);

CREATE INDEX idx_upload_jobs_status ON upload_jobs (status, created_at);

CREATE INDEX ix_upload_jobs_user_id ON upload_jobs (user_id, created_at, job_id);

CREATE INDEX ix_upload_jobs_parsed_sha256 ON upload_jobs (user_id, parsed_sha256);

CREATE UNIQUE INDEX idx_upload_jobs_document ON upload_jobs (document_id);

CREATE TABLE api_tokens (
	id VARCHAR(36) NOT NULL,
	user_id VARCHAR(36) NOT NULL,
	label TEXT NOT NULL,
	scope TEXT NOT NULL,
	token_sha256 TEXT NOT NULL,
	created_at VARCHAR(24) NOT NULL,
	expires_at VARCHAR(24),
	revoked_at VARCHAR(24),
	CONSTRAINT pk_api_tokens PRIMARY KEY (id),
	CONSTRAINT ck_api_tokens_scope CHECK (scope IN ('user', 'admin', 'service')),
	CONSTRAINT fk_api_tokens_user_id FOREIGN KEY(user_id) REFERENCES users (id),
	CONSTRAINT uq_api_tokens_token_sha256 UNIQUE (token_sha256)
);

CREATE INDEX ix_api_tokens_user_id ON api_tokens (user_id);

CREATE TABLE idempotency_keys (
	user_id VARCHAR(36) NOT NULL,
	"key" TEXT NOT NULL,
	request_sha256 TEXT NOT NULL,
	status INTEGER,
	answer JSON,
	created_at VARCHAR(24) NOT NULL,
	CONSTRAINT pk_idempotency_keys PRIMARY KEY (user_id, "key"),
	CONSTRAINT fk_idempotency_keys_user_id FOREIGN KEY(user_id) REFERENCES users (id)
);

CREATE INDEX ix_idempotency_keys_created_at ON idempotency_keys (created_at);

CREATE TABLE ingestion_logs (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	run_id VARCHAR(36) NOT NULL,
	logged_at VARCHAR(24) NOT NULL,
	level TEXT NOT NULL,
	message TEXT NOT NULL,
	context JSON,
	CONSTRAINT ck_ingestion_logs_level CHECK (level IN ('debug', 'info', 'warn', 'error')),
	CONSTRAINT fk_ingestion_logs_run_id FOREIGN KEY(run_id) REFERENCES ingestion_runs (id) ON DELETE CASCADE
);

CREATE INDEX ix_ingestion_logs_run ON ingestion_logs (run_id, logged_at);

CREATE INDEX ix_ingestion_logs_errors ON ingestion_logs (run_id, logged_at) WHERE level = 'error';

CREATE TABLE ingestion_tasks (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	run_id VARCHAR(36) NOT NULL,
	source TEXT NOT NULL,
	task_key TEXT NOT NULL,
	stage TEXT NOT NULL,
	started_at VARCHAR(24) NOT NULL,
	finished_at VARCHAR(24),
	error TEXT,
	error_type TEXT,
	error_stage TEXT,
	task JSON,
	attempts INTEGER DEFAULT 0 NOT NULL,
	resolved_at VARCHAR(24),
	CONSTRAINT ck_ingestion_tasks_stage CHECK (stage IN ('discovered', 'fetched', 'parsed', 'loaded', 'errored')),
	CONSTRAINT uq_ingestion_tasks_run_id_task_key UNIQUE (run_id, task_key),
	CONSTRAINT fk_ingestion_tasks_run_id FOREIGN KEY(run_id) REFERENCES ingestion_runs (id) ON DELETE CASCADE
);

CREATE INDEX ix_ingestion_tasks_run ON ingestion_tasks (run_id, stage);

CREATE INDEX ix_ingestion_tasks_open_errors ON ingestion_tasks (source, task_key) WHERE stage = 'errored' AND resolved_at IS NULL;

CREATE TABLE ingestion_stages (
	run_id VARCHAR(36) NOT NULL,
	stage TEXT NOT NULL,
	began_at VARCHAR(24) NOT NULL,
	ended_at VARCHAR(24) NOT NULL,
	items INTEGER DEFAULT 0 NOT NULL,
	seconds FLOAT NOT NULL,
	waited_seconds FLOAT NOT NULL,
	retries INTEGER DEFAULT 0 NOT NULL,
	CONSTRAINT pk_ingestion_stages PRIMARY KEY (run_id, stage),
	CONSTRAINT ck_ingestion_stages_stage CHECK (stage IN ('discover', 'fetch', 'parse', 'load')),
	CONSTRAINT fk_ingestion_stages_run_id_ingestion_runs FOREIGN KEY(run_id) REFERENCES ingestion_runs (id) ON DELETE CASCADE
);

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
	publish_date VARCHAR(24),
	update_date VARCHAR(24),
	summary TEXT,
	latest_html TEXT,
	latest_pdf TEXT,
	sha1 TEXT,
	authors JSON,
	related_materials JSON,
	CONSTRAINT pk_crs_reports PRIMARY KEY (id),
	CONSTRAINT fk_crs_reports_id FOREIGN KEY(id) REFERENCES documents (id)
);

CREATE INDEX ix_crs_reports_number ON crs_reports (number);

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

CREATE TABLE gao_reports (
	id TEXT NOT NULL,
	product TEXT NOT NULL,
	title TEXT NOT NULL,
	link TEXT,
	guid TEXT,
	description TEXT,
	pub_date VARCHAR(24),
	published TEXT,
	publicly_released TEXT,
	fast_facts TEXT,
	html_url TEXT,
	pdf_url TEXT,
	CONSTRAINT pk_gao_reports PRIMARY KEY (id),
	CONSTRAINT fk_gao_reports_id FOREIGN KEY(id) REFERENCES documents (id)
);

CREATE INDEX ix_gao_reports_product ON gao_reports (product);

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
	held_dates JSON NOT NULL,
	date_is_placeholder BOOLEAN NOT NULL,
	is_appropriation BOOLEAN,
	is_nomination BOOLEAN,
	is_errata BOOLEAN,
	CONSTRAINT pk_hearings PRIMARY KEY (id),
	CONSTRAINT fk_hearings_id FOREIGN KEY(id) REFERENCES documents (id)
);

CREATE INDEX ix_hearings_package_id ON hearings (package_id);

CREATE INDEX ix_hearings_held_date ON hearings (held_date);

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

CREATE TABLE embedding_choice (
	id INTEGER NOT NULL,
	generation INTEGER NOT NULL,
	previous INTEGER,
	chosen_at VARCHAR(24) NOT NULL,
	CONSTRAINT pk_embedding_choice PRIMARY KEY (id),
	CONSTRAINT ck_embedding_choice_one_row CHECK (id = 1),
	CONSTRAINT fk_embedding_choice_generation FOREIGN KEY(generation) REFERENCES embedding_generations (id),
	CONSTRAINT fk_embedding_choice_previous FOREIGN KEY(previous) REFERENCES embedding_generations (id)
);

CREATE TABLE embedding_batches (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	run_id VARCHAR(36) NOT NULL,
	generation INTEGER NOT NULL,
	texts INTEGER NOT NULL,
	tokens INTEGER NOT NULL,
	requests INTEGER NOT NULL,
	retries INTEGER NOT NULL,
	cost FLOAT NOT NULL,
	created_at VARCHAR(24) NOT NULL,
	CONSTRAINT fk_embedding_batches_generation FOREIGN KEY(generation) REFERENCES embedding_generations (id)
);

CREATE INDEX ix_embedding_batches_generation ON embedding_batches (generation);

CREATE TABLE upload_events (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	job_id VARCHAR(36) NOT NULL,
	from_status TEXT,
	to_status TEXT NOT NULL,
	at VARCHAR(24) NOT NULL,
	"by" TEXT NOT NULL,
	why TEXT NOT NULL,
	CONSTRAINT fk_upload_events_job_id FOREIGN KEY(job_id) REFERENCES upload_jobs (job_id) ON DELETE CASCADE
);

CREATE INDEX ix_upload_events_job_id ON upload_events (job_id, id);

CREATE TABLE upload_errors (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	job_id VARCHAR(36) NOT NULL,
	stage TEXT NOT NULL,
	type TEXT NOT NULL,
	message TEXT NOT NULL,
	is_final BOOLEAN NOT NULL,
	at VARCHAR(24) NOT NULL,
	CONSTRAINT fk_upload_errors_job_id FOREIGN KEY(job_id) REFERENCES upload_jobs (job_id) ON DELETE CASCADE
);

CREATE INDEX ix_upload_errors_job_id ON upload_errors (job_id);

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
	notes JSON,
	calendar_numbers JSON,
	CONSTRAINT pk_bills PRIMARY KEY (id),
	CONSTRAINT fk_bills_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT fk_bills_sponsor_id FOREIGN KEY(sponsor_id) REFERENCES legislators (id)
);

CREATE UNIQUE INDEX ix_bills_congress_type_number ON bills (congress, type, number);

CREATE INDEX ix_bills_sponsor_id ON bills (sponsor_id);

CREATE INDEX ix_bills_policy_area ON bills (policy_area);

CREATE INDEX ix_bills_introduced_date ON bills (introduced_date);

CREATE TABLE committee_names (
	committee_id TEXT NOT NULL,
	congress INTEGER NOT NULL,
	name TEXT NOT NULL,
	CONSTRAINT pk_committee_names PRIMARY KEY (committee_id, congress),
	CONSTRAINT fk_committee_names_committee_id FOREIGN KEY(committee_id) REFERENCES committees (id) ON DELETE CASCADE
);

CREATE TABLE committee_congresses (
	committee_id TEXT NOT NULL,
	congress INTEGER NOT NULL,
	CONSTRAINT pk_committee_congresses PRIMARY KEY (committee_id, congress),
	CONSTRAINT fk_committee_congresses_committee_id FOREIGN KEY(committee_id) REFERENCES committees (id) ON DELETE CASCADE
);

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

CREATE TABLE crs_topics (
	report_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	name TEXT NOT NULL,
	source TEXT,
	topic_id TEXT,
	CONSTRAINT pk_crs_topics PRIMARY KEY (report_id, ord),
	CONSTRAINT fk_crs_topics_report_id FOREIGN KEY(report_id) REFERENCES crs_reports (id) ON DELETE CASCADE
);

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

CREATE TABLE fr_document_dockets (
	document_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	docket_id TEXT NOT NULL,
	CONSTRAINT pk_fr_document_dockets PRIMARY KEY (document_id, ord),
	CONSTRAINT fk_fr_document_dockets_document_id FOREIGN KEY(document_id) REFERENCES fr_documents (id)
);

CREATE INDEX ix_fr_document_dockets_docket_id ON fr_document_dockets (docket_id);

CREATE TABLE fr_document_rins (
	document_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	regulation_id_number TEXT NOT NULL,
	CONSTRAINT pk_fr_document_rins PRIMARY KEY (document_id, ord),
	CONSTRAINT fk_fr_document_rins_document_id FOREIGN KEY(document_id) REFERENCES fr_documents (id)
);

CREATE INDEX ix_fr_document_rins_regulation_id_number ON fr_document_rins (regulation_id_number);

CREATE TABLE fr_document_topics (
	document_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	topic TEXT NOT NULL,
	CONSTRAINT pk_fr_document_topics PRIMARY KEY (document_id, ord),
	CONSTRAINT fk_fr_document_topics_document_id FOREIGN KEY(document_id) REFERENCES fr_documents (id)
);

CREATE INDEX ix_fr_document_topics_topic ON fr_document_topics (topic);

CREATE TABLE gao_topics (
	report_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	topic TEXT NOT NULL,
	CONSTRAINT pk_gao_topics PRIMARY KEY (report_id, ord),
	CONSTRAINT fk_gao_topics_report_id FOREIGN KEY(report_id) REFERENCES gao_reports (id) ON DELETE CASCADE
);

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

CREATE TABLE hearing_witnesses (
	hearing_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	witness TEXT NOT NULL,
	CONSTRAINT pk_hearing_witnesses PRIMARY KEY (hearing_id, ord),
	CONSTRAINT fk_hearing_witnesses_hearing_id FOREIGN KEY(hearing_id) REFERENCES hearings (id) ON DELETE CASCADE
);

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
	subcommittees JSON NOT NULL,
	CONSTRAINT pk_hearing_committees PRIMARY KEY (hearing_id, ord),
	CONSTRAINT fk_hearing_committees_hearing_id FOREIGN KEY(hearing_id) REFERENCES hearings (id) ON DELETE CASCADE,
	CONSTRAINT fk_hearing_committees_committee_id FOREIGN KEY(committee_id) REFERENCES committees (id)
);

CREATE INDEX ix_hearing_committees_committee_id ON hearing_committees (committee_id);

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

CREATE TABLE legislator_ids (
	legislator_id TEXT NOT NULL,
	scheme TEXT NOT NULL,
	ord INTEGER NOT NULL,
	value TEXT NOT NULL,
	CONSTRAINT pk_legislator_ids PRIMARY KEY (legislator_id, scheme, ord),
	CONSTRAINT fk_legislator_ids_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id) ON DELETE CASCADE
);

CREATE INDEX ix_legislator_ids_scheme_value ON legislator_ids (scheme, value);

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

CREATE TABLE legislator_family (
	legislator_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	name TEXT,
	relation TEXT,
	CONSTRAINT pk_legislator_family PRIMARY KEY (legislator_id, ord),
	CONSTRAINT fk_legislator_family_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id) ON DELETE CASCADE
);

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
	pub_date VARCHAR(24),
	categories JSON NOT NULL,
	CONSTRAINT pk_member_statements PRIMARY KEY (id),
	CONSTRAINT fk_member_statements_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT fk_member_statements_legislator_id FOREIGN KEY(legislator_id) REFERENCES legislators (id)
);

CREATE INDEX ix_member_statements_legislator_id ON member_statements (legislator_id);

CREATE INDEX ix_member_statements_bioguide ON member_statements (bioguide);

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
	committees JSON,
	links JSON,
	calendar_number JSON,
	CONSTRAINT pk_bill_actions PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_actions_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE
);

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
	activities JSON,
	CONSTRAINT pk_bill_committees PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_committees_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE,
	CONSTRAINT fk_bill_committees_committee_id FOREIGN KEY(committee_id) REFERENCES committees (id)
);

CREATE INDEX ix_bill_committees_committee_id ON bill_committees (committee_id);

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
	relationship_details JSON,
	CONSTRAINT pk_bill_related PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_related_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE,
	CONSTRAINT fk_bill_related_related_id FOREIGN KEY(related_id) REFERENCES bills (id)
);

CREATE INDEX ix_bill_related_related_id ON bill_related (related_id);

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
	amended_amendment JSON,
	actions JSON,
	cosponsors JSON,
	links JSON,
	notes JSON,
	CONSTRAINT pk_bill_amendments PRIMARY KEY (bill_id, ord),
	CONSTRAINT fk_bill_amendments_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id) ON DELETE CASCADE,
	CONSTRAINT fk_bill_amendments_sponsor_id FOREIGN KEY(sponsor_id) REFERENCES legislators (id)
);

CREATE INDEX ix_bill_amendments_sponsor_id ON bill_amendments (sponsor_id);

CREATE TABLE bill_text_versions (
	id TEXT NOT NULL,
	bill_ref TEXT,
	bill_id TEXT,
	version_code TEXT NOT NULL,
	type TEXT,
	date TEXT,
	url TEXT,
	official_title TEXT,
	formats JSON,
	CONSTRAINT pk_bill_text_versions PRIMARY KEY (id),
	CONSTRAINT fk_bill_text_versions_id FOREIGN KEY(id) REFERENCES documents (id),
	CONSTRAINT fk_bill_text_versions_bill_id FOREIGN KEY(bill_id) REFERENCES bills (id)
);

CREATE INDEX ix_bill_text_versions_bill_id ON bill_text_versions (bill_id);

CREATE TABLE cbo_publications (
	id TEXT NOT NULL,
	publication_id TEXT NOT NULL,
	title TEXT NOT NULL,
	date VARCHAR(24),
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

CREATE TABLE lda_activity_lobbyists (
	filing_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	activity INTEGER,
	lobbyist_ref TEXT,
	lobbyist_id TEXT,
	name TEXT,
	covered_position TEXT,
	new BOOLEAN,
	status INTEGER,
	indicator INTEGER,
	CONSTRAINT pk_lda_activity_lobbyists PRIMARY KEY (filing_id, ord),
	CONSTRAINT fk_lda_activity_lobbyists_filing_id FOREIGN KEY(filing_id) REFERENCES lda_filings (id) ON DELETE CASCADE,
	CONSTRAINT fk_lda_activity_lobbyists_lobbyist_id FOREIGN KEY(lobbyist_id) REFERENCES lda_lobbyists (id)
);

CREATE INDEX ix_lda_activity_lobbyists_lobbyist_id_lobbyist_ref ON lda_activity_lobbyists (lobbyist_id, lobbyist_ref);

CREATE TABLE lda_activity_entities (
	filing_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	activity INTEGER,
	entity_id INTEGER,
	name TEXT,
	CONSTRAINT pk_lda_activity_entities PRIMARY KEY (filing_id, ord),
	CONSTRAINT fk_lda_activity_entities_filing_id FOREIGN KEY(filing_id) REFERENCES lda_filings (id) ON DELETE CASCADE
);

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

CREATE TABLE executive_ids (
	executive_id TEXT NOT NULL,
	scheme TEXT NOT NULL,
	ord INTEGER NOT NULL,
	value TEXT NOT NULL,
	CONSTRAINT pk_executive_ids PRIMARY KEY (executive_id, scheme, ord),
	CONSTRAINT fk_executive_ids_executive_id FOREIGN KEY(executive_id) REFERENCES executives (id) ON DELETE CASCADE
);

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

CREATE TABLE roll_call_votes (
	id TEXT NOT NULL,
	chamber TEXT NOT NULL,
	congress INTEGER NOT NULL,
	session INTEGER NOT NULL,
	congress_year INTEGER NOT NULL,
	number INTEGER NOT NULL,
	status TEXT NOT NULL,
	vote_date TEXT,
	voted_at VARCHAR(24),
	modify_date VARCHAR(24),
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

CREATE TABLE saps (
	id TEXT NOT NULL,
	document_title TEXT NOT NULL,
	bill TEXT,
	bill_ref TEXT,
	bill_id TEXT,
	bills JSON NOT NULL,
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
	subcommittees JSON NOT NULL,
	CONSTRAINT pk_committee_report_committees PRIMARY KEY (report_id, ord),
	CONSTRAINT fk_committee_report_committees_report_id FOREIGN KEY(report_id) REFERENCES committee_reports (id) ON DELETE CASCADE,
	CONSTRAINT fk_committee_report_committees_committee_id FOREIGN KEY(committee_id) REFERENCES committees (id)
);

CREATE INDEX ix_committee_report_committees_committee_id ON committee_report_committees (committee_id);

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

CREATE TABLE public_law_history (
	law_id TEXT NOT NULL,
	ord INTEGER NOT NULL,
	heading TEXT,
	subheading TEXT,
	text TEXT NOT NULL,
	CONSTRAINT pk_public_law_history PRIMARY KEY (law_id, ord),
	CONSTRAINT fk_public_law_history_law_id FOREIGN KEY(law_id) REFERENCES public_laws (id) ON DELETE CASCADE
);

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

CREATE VIRTUAL TABLE chunk_index USING fts5(
    title, headings, text, content='', contentless_delete=1,
    tokenize='porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER ingestion_runs_moves BEFORE UPDATE OF status ON ingestion_runs
WHEN OLD.status <> 'running' AND NEW.status <> OLD.status
BEGIN SELECT RAISE(ABORT, 'a finished run does not change its status'); END;

CREATE TRIGGER upload_jobs_begin BEFORE INSERT ON upload_jobs
WHEN NEW.status NOT IN ('uploaded', 'parse_queued')
BEGIN SELECT RAISE(ABORT, 'an upload job begins as uploaded or parse_queued'); END;

CREATE TRIGGER upload_jobs_move BEFORE UPDATE OF status ON upload_jobs
WHEN NEW.status <> OLD.status AND OLD.status || ' ' || NEW.status NOT IN ('uploaded parse_queued', 'uploaded failed_parse', 'parse_queued parsed', 'parse_queued failed_parse', 'parsed parse_validated', 'parsed failed_parse', 'parse_validated chunking', 'parse_validated failed_chunking', 'chunking chunks_stored', 'chunking failed_chunking', 'chunks_stored embedding_queued', 'chunks_stored failed_embedding', 'embedding_queued embedding_in_progress', 'embedding_queued failed_embedding', 'embedding_in_progress embeddings_stored', 'embedding_in_progress failed_embedding', 'embeddings_stored complete', 'embeddings_stored failed_embedding', 'failed_parse uploaded', 'failed_parse parse_queued', 'failed_chunking parse_validated', 'failed_embedding chunks_stored')
BEGIN SELECT RAISE(ABORT, 'an upload job cannot move like this'); END;

CREATE TRIGGER upload_jobs_began AFTER INSERT ON upload_jobs
BEGIN
    INSERT INTO upload_events (job_id, from_status, to_status, at, "by", why)
    VALUES (NEW.job_id, NULL, NEW.status, NEW.updated_at, NEW.moved_by, NEW.moved_why);
END;

CREATE TRIGGER upload_jobs_moved AFTER UPDATE OF status ON upload_jobs
WHEN NEW.status <> OLD.status
BEGIN
    INSERT INTO upload_events (job_id, from_status, to_status, at, "by", why)
    VALUES (NEW.job_id, OLD.status, NEW.status, NEW.updated_at, NEW.moved_by, NEW.moved_why);
END;

INSERT INTO alembic_version VALUES ('0025')
