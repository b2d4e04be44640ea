# A Debian in which the README's two commands run, for a course on Windows or a Mac:
#
#     docker build -t trainyard .
#     docker run -it --rm trainyard
#     docker run -it --rm --cap-add=SYS_PTRACE --security-opt seccomp=unconfined trainyard      for gdb
#
# Debian 12 has the OpenCL driver whose output the tutorials show.  git and gdb are for the labs and the debugger's pages.
FROM debian:bookworm
RUN apt-get update && apt-get install -y --no-install-recommends make git gdb
RUN useradd --create-home --shell /bin/bash student
WORKDIR /home/student/trainyard
COPY src/make/packages.sh src/make/packages.sh
RUN src/make/packages.sh --install build tests patch
COPY . .
RUN chown -R student:student .
USER student
RUN make
CMD ["bash"]
