/* elsewhere.c - what options are called in other programs: in PyTorch's examples, nanoGPT, llm.c, Hugging Face's
 * trainer, Megatron.  A user who types one of these words, or writes it into a config file, is told ours, or why there
 * is none.  Folders bring along the words for their own options (struct module).
 */
#include "elsewhere.h"
#include "trainer/train/train.h"

#define GPU_WHY "the first GPU is taken, else the CPU; -d P:D takes another one, as `yard devices` numbers them"
#define EPOCHS_WHY "N steps are N x --batch x --seq-len tokens, however large the data are"
#define FLOAT_WHY "all is computed in 32-bit floats"
#define PROCESS_WHY "one process drives all devices: -d names them, --mesh arranges them"

static const struct foreign_words words[] = {
    {"batch",
     "batch-size global-batch-size train-batch-size total-batch-size b bs batchsize per-device-train-batch-size", NULL},
    {"micro-batch", "micro-batch-size device-batch-size minibatch mini-batch-size", NULL},
    {"micro-batch", "gradient-accumulation-steps accumulation-steps grad-accum-steps accumulate",
     "it says how many sequences are taken at a time, and the batch divided by that is the number of rounds"},
    {"seq-len",
     "block-size sequence-length seq-length context-length context-size context ctx-size n-ctx max-length max-seq-len "
     "max-seq-length max-position-embeddings n-positions window",
     NULL},
    {"layers", "n-layer n-layers num-layers num-hidden-layers depth", NULL},
    {"heads", "n-head n-heads num-heads num-attention-heads", NULL},
    {"channels",
     "n-embd n-embed hidden-size hidden-dim d-model dim embed-dim embedding-size emb-dim n-hidden hidden width", NULL},
    {"lr", "learning-rate learningrate lrate max-lr l", NULL},
    {"lr-min", "min-lr learning-rate-min final-lr lr-end", NULL},
    {"schedule", "lr-scheduler lr-scheduler-type scheduler lr-decay-style lr-schedule decay-lr", NULL},
    {"warmup", "warmup-steps warmup-iters lr-warmup-iters num-warmup-steps lr-warmup", NULL},
    {"warmup", "warmup-ratio", "it counts steps"},
    {"steps", "max-iters iters iterations num-iterations n-iters train-iters max-steps num-steps n-steps total-steps x",
     NULL},
    {"steps", "lr-decay-iters", "the learning rate decays until the last one"},
    {"steps", "epochs epoch n-epochs num-epochs num-train-epochs max-epochs", EPOCHS_WHY},
    {"weight-decay", "wd decay", NULL},
    {"clip", "grad-clip clip-grad max-grad-norm gradient-clip-val grad-norm", NULL},
    {"beta1", "adam-beta1", NULL},
    {"beta2", "adam-beta2", NULL},
    {"beta1", "betas beta adam-betas", "the other number is --beta2"},
    {"eps", "adam-eps adam-epsilon epsilon", NULL},
    {"seed", "random-seed manual-seed rng-seed", NULL},
    {"model", "preset model-size size model-name", NULL},
    {"data",
     "dataset data-dir data-path train-data train-file input input-file input-bin text corpus train-data-path "
     "dataset-name i",
     NULL},
    {"val-data", "val-file validation-file eval-data test-data valid-data j", NULL},
    {"val-every", "eval-interval eval-every eval-steps val-loss-every validation-interval test-every", NULL},
    {"val-batches", "eval-iters val-max-steps eval-batches val-steps limit-val-batches", NULL},
    {"val-share", "val-split validation-split valid-split val-fraction", NULL},
    {"order", "shuffle no-shuffle", "it takes shuffle or file"},
    {"tokens", "tokenizer tokenizer-type vocab-file char-level", NULL},
    {"vocab", "vocab-size n-vocab", NULL},
    {"data", "vocab-size n-vocab", "the vocabulary comes from the data and --tokens"},
    {"init", "init-from pretrained from-pretrained model-name-or-path load-weights finetune from", NULL},
    {"save", "out-dir output-dir save-dir out output checkpoint-dir ckpt-dir save-path logdir o always-save-checkpoint",
     NULL},
    {"save-every", "save-interval save-steps checkpoint-every save-freq ckpt-interval", NULL},
    {"log", "log-file logfile logging-dir", NULL},
    {"log", "log-interval log-every logging-steps wandb wandb-log wandb-project tensorboard report-to",
     "it gets a line of JSON per step, and `yard plot` draws it"},
    {"sample-tokens", "generate max-new-tokens", NULL},
    {"attention", "flash flash-attn flash-attention use-flash-attn attn-implementation attention-impl",
     "it takes plain or flash"},
    {"zero", "zero-stage fsdp sharding-strategy use-distributed-optimizer", NULL},
    {"mesh",
     "tensor-model-parallel-size tensor-parallel-size tp tp-size pipeline-model-parallel-size pp pp-size dp dp-size "
     "data-parallel-size",
     "--mesh dp=A,pp=B,tp=C"},
    {"pipeline", "pipeline-schedule pp-schedule", NULL},
    {"devices", "device gpu gpus cuda gpu-id device-id device-ids use-cuda use-gpu n-gpu n-gpus num-gpus cpu no-cuda",
     GPU_WHY},
    {"devices", "nproc nproc-per-node nnodes world-size num-nodes local-rank rank ddp distributed num-processes",
     PROCESS_WHY},
    {"host-mem", "max-memory memory", NULL},
    {"from", "model init resume load load-checkpoint checkpoint ckpt out-dir save model-path model-name-or-path m",
     NULL},
    {"prompt", "start text input p prefix", NULL},
    {"count", "sample-tokens max-new-tokens max-tokens n-predict tokens length max-length num-tokens n steps gen-len",
     NULL},
    {"temperature", "temp t", NULL},
    {"top-k", "topk k", NULL},
    {"config", "config-file conf cfg c", NULL},

    {NULL, "dropout attn-pdrop embd-pdrop resid-pdrop dropout-p drop-rate hidden-dropout attention-dropout",
     "there is no dropout here; --weight-decay and more data are what helps against overfitting"},
    {NULL, "dtype fp16 bf16 amp float16 bfloat16 half precision mixed-precision tf32 autocast grad-scaler", FLOAT_WHY},
    {NULL, "compile torch-compile jit use-compile", "nothing is to be compiled: kernels are, when the run begins"},
    {NULL, "optimizer optim adam adamw sgd momentum",
     "the optimizer is AdamW: --lr, --beta1, --beta2, --eps and --weight-decay are its numbers"},
    {NULL, "bias no-bias use-bias", "linear layers have a bias, as GPT-2's"},
    {NULL, "threads n-threads num-threads workers num-workers dataloader-num-workers nthreads",
     "the driver takes all cores; -d 0:0/2 cuts a CPU in two, POCL_MAX_PTHREAD_COUNT limits PoCL"},
    {NULL, "backend", "the backend is OpenCL; `yard devices` shows what it offers"},
    {NULL, "top-p nucleus min-p repetition-penalty repeat-penalty beam num-beams",
     "the next token is chosen by --temperature and --top-k alone"},
    {NULL, "eval-only evaluate-only do-eval test-only",
     "to evaluate a model, train it for one step that changes nothing: " EVALUATES},
    {NULL, "early-stopping patience target-loss",
     "a run ends with --steps; Ctrl-C ends it earlier, and --save keeps what it has learnt"},
    {NULL, "num-samples num-return-sequences", "one text is written at a time; another --seed gives another one"},
    {NULL, "verbose quiet silent debug progress", "there is one way to show progress; --log has every step"},
    {NULL, "label-smoothing lora lora-rank peft deepspeed quantize load-in-8bit rope rotary swiglu rmsnorm moe",
     "the model is GPT-2's, and all its parameters are trained"},
};

const struct module module_elsewhere = {
    .name = "elsewhere", .foreign = words, .n_foreign = COUNT(words), .other_words = &other_words};
