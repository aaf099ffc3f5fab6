/* The thunks of trace_calls.c: each notes when its call begins, puts a return address of ours in
 * the place of the caller's, and jumps on. All argument registers and both results stay. */
	.text
	.globl trace_thunks
	.hidden trace_thunks
	.balign 16
trace_thunks:
	.set index, 0
	.rept 1024
	.balign 16
	pushq $index
	jmp common
	.set index, index + 1
	.endr

	.balign 16
common:
	pushq %rax
	pushq %rdi
	pushq %rsi
	pushq %rdx
	pushq %rcx
	pushq %r8
	pushq %r9
	pushq %r10
	subq $128, %rsp
	movups %xmm0, (%rsp)
	movups %xmm1, 16(%rsp)
	movups %xmm2, 32(%rsp)
	movups %xmm3, 48(%rsp)
	movups %xmm4, 64(%rsp)
	movups %xmm5, 80(%rsp)
	movups %xmm6, 96(%rsp)
	movups %xmm7, 112(%rsp)
	movq 192(%rsp), %rdi
	movq 200(%rsp), %rsi
	call trace_enter@PLT
	movq %rax, %r11
	movups (%rsp), %xmm0
	movups 16(%rsp), %xmm1
	movups 32(%rsp), %xmm2
	movups 48(%rsp), %xmm3
	movups 64(%rsp), %xmm4
	movups 80(%rsp), %xmm5
	movups 96(%rsp), %xmm6
	movups 112(%rsp), %xmm7
	addq $128, %rsp
	popq %r10
	popq %r9
	popq %r8
	popq %rcx
	popq %rdx
	popq %rsi
	popq %rdi
	popq %rax
	addq $8, %rsp
	leaq leave(%rip), %r10
	movq %r10, (%rsp)
	jmp *%r11

leave:
	pushq %rax
	pushq %rdx
	subq $16, %rsp
	movups %xmm0, (%rsp)
	call trace_leave@PLT
	movq %rax, %r11
	movups (%rsp), %xmm0
	addq $16, %rsp
	popq %rdx
	popq %rax
	jmp *%r11

	.section .note.GNU-stack, "", @progbits
