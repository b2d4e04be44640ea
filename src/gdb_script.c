/* gdb_script.c - names a script of gdb in the program, so that gdb loads it together with ./yard.  Nothing here runs.
 *
 * The script is build/yard-gdb.py, which make copies from src/gdb/yard.py.  It gives gdb commands such as
 * `yard task N`: see tutorials/reference-debugging.md.
 *
 * gdb looks for such names in the section .debug_gdb_scripts of the file of a program, where each is a byte 1 and then
 * a text.  C cannot give a variable the flags that this section must have (M, S), so this is written in assembly.  Only
 * files in the format ELF, which Linux has, have this section.
 */
#ifdef __ELF__
__asm__(".pushsection \".debug_gdb_scripts\", \"MS\", %progbits, 1\n"
        ".byte 1\n"
        ".asciz \"build/yard-gdb.py\"\n"
        ".popsection");
#endif
