/* file.h - files, in one line: what kind they are, safetensors, llm.c's formats, token shards, publishing.
 *
 * Everything read is untrusted: sizes are checked before they are used, and every refusal names the file, the field or
 * byte, what was found and what was expected.  Everything written appears whole or not at all.
 *
 *     bytes.h          plain files                                    bytes.c
 *     kinds.h          what a file says it is                         kinds.c
 *     claims.h         what the command reads and writes              claims.c
 *     publish.h        write beside, sync, rename                     publish.c
 *     paths.h          what is at a path                              paths.c
 *     locks.h          one process at a time                          locks.c
 *     safetensors.h    tensors in a file                              safetensors.c
 *     llmc.h           llm.c's model checkpoint and token shard       llmc.c
 *
 * Protocol of a command: begin_claims(), claim_input() and claim_output() for every file that options name; then
 * open_reader() and open_writer(), in any order; publish() when a file is complete.
 */
#ifndef FILE_H
#define FILE_H

#include "bytes.h"       /* brings: reader, read_whole, read_first_bytes, map_large, unpack_gzip */
#include "claims.h"      /* brings: claim_input, claim_output, expect_replaceable */
#include "kinds.h"       /* brings: file_kind, kind_of_file, is_foreign, read_text, read_json */
#include "llmc.h"        /* brings: llmc_model, has_magic, read_token_shard */
#include "locks.h"       /* brings: lock_folder, open_locked */
#include "paths.h"       /* brings: exists, is_folder, make_folder, file_beside */
#include "publish.h"     /* brings: writer, publish, publish_text */
#include "safetensors.h" /* brings: safetensors, fits_safetensors, st_tensor, st_writer */

#endif
