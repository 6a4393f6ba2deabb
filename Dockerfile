# `.ci/pin-images` adds the digest.
ARG PYTHON_IMAGE=docker.io/library/python:3.13-slim-bookworm
FROM ${PYTHON_IMAGE} AS build
WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
COPY .ci/build.lock .ci/runtime.lock ./
RUN pip install --quiet --require-hashes --only-binary :all: -r build.lock
RUN python -m venv --without-pip /opt/rprime \
 && pip --python /opt/rprime/bin/python install --quiet --no-compile --require-hashes --only-binary :all: -r runtime.lock
COPY pyproject.toml README.md LICENSE ./
COPY docs docs
COPY service service
COPY .ci/image .ci/image
# The smoke test ends the build if the environment lacks something. Bytecode is kept of what it
# loads, which is half. Nothing changes the files later, so Python need not look whether the
# bytecode is still theirs.
RUN pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir dist . \
 && pip --python /opt/rprime/bin/python install --quiet --no-compile --no-deps --no-index dist/*.whl \
 && python .ci/image/slim.py /opt/rprime \
 && /opt/rprime/bin/python .ci/image/smoke.py \
 && find /opt/rprime/lib -name '*.pyc' | sed 's|__pycache__/\(.*\)\.cpython-.*|\1.py|' > loaded \
 && python -m compileall -q -f -i loaded --invalidation-mode unchecked-hash \
 && /opt/rprime/bin/python -B .ci/image/sbom.py rprime > /opt/rprime/sbom.cdx.json \
 && cp .ci/image/health.py /opt/rprime/

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="rprime" \
      org.opencontainers.image.description="REST evaluation service for multiclass classifiers" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/rprime /opt/rprime
# A volume that is mounted here belongs to the user of the service, too.
WORKDIR /data
RUN chown 65532:65532 /data
ENV PATH=/opt/rprime/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OPENBLAS_NUM_THREADS=1 \
    RPRIME_STORE=none
USER 65532:65532
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=10s --start-period=10s --retries=3 \
    CMD ["python", "/opt/rprime/health.py"]
ENTRYPOINT ["rprime"]
CMD ["serve"]
