# fonds in a container: the program and what it needs, owned by root, run by nobody in particular.
# A digest fixes its content: PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:…
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
# What is built here is pinned, too.
ENV PIP_CONSTRAINT=/src/constraints.txt \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY src ./src
# Extras of pyproject.toml, by commas: EXTRAS=query,ray,ocr
ARG EXTRAS=query
RUN python -m venv --without-pip /opt/fonds && \
    python -m pip --python /opt/fonds/bin/python install ".[${EXTRAS}]"

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="fonds" \
      org.opencontainers.image.description="Public documents in, cited answers out." \
      org.opencontainers.image.licenses="Apache-2.0"
# Nothing is installed here any more; and a new volume takes the owner of the folder it covers.
RUN python -m pip uninstall --yes --quiet --root-user-action=ignore pip setuptools wheel && \
    groupadd --system --gid 10001 fonds && \
    useradd --system --uid 10001 --gid fonds --home-dir /library --shell /usr/sbin/nologin fonds && \
    install --directory --owner=fonds --group=fonds --mode=0700 /library
COPY --from=build /opt/fonds /opt/fonds
ENV PATH=/opt/fonds/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    FONDS_HOME=/library \
    FONDS_LOG_FORMAT=json \
    FONDS_LOG_LEVEL=info
WORKDIR /library
VOLUME ["/library"]
USER 10001:10001
EXPOSE 8000
# Of the server; other commands bring their own, as compose.yaml shows.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/health', timeout=8)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["fonds"]
CMD ["serve", "--host", "0.0.0.0"]
