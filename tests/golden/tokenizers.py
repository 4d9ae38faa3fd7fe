"""Byte-level BPE by huggingface/tokenizers, trained on a few lines: tokenizers.py > tokenizers.json"""
import json, random
from tokenizers import Tokenizer, models, pre_tokenizers, trainers, normalizers, Regex, AddedToken, processors
import tokenizers
W = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|@| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
train = ["The quick brown fox jumps over the lazy dog. It's 2024, isn't it? We've 1234567 reasons.", "Der schnelle braune Fuchs springt über den faulen Hund; Größe, Straße.",
         "El veloz murciélago hindú comía feliz cardillo y kiwi.", "    int main() { return 0; }\n\n\tfor (int i = 0; i < n; ++i)\r\n", "Быстрая лиса, 敏捷的棕色狐狸跳过了懒狗。 すばやい茶色の狐"] * 3
rng = random.Random(1)
alphabet = list("abcXYZ'sStTrReEvVlLmMdD0123456789 \t\n\r.,;!?-_()") + ["\u00a0", "\u3000", "\u2028", "é", "ß", "ſ", "Ж", "中", "文", "🙂", "½", "٣", "\u200b", "\u0301", "’", "K", "ñ", "Ⅷ", "\x85", "\x1c"]
texts = ["", " ", "  a", "a  b", "\n\n", " \n a", "a \n\n  b", "'s 'S 'LL 'ſ don't", "I'll we'Re x'VE", "123456 7", "a1b22c333d4444", "...\n\n...", " ...", "\t\tx", "x  ", "  ", "hello<|end|>world<|end|>", "<|end", "é中🙂", "Über 1000 Wörter"]
texts += ["".join(rng.choice(alphabet) for _ in range(rng.randint(1, 24))) for _ in range(150)]
out = {}
for name, numbers, nfc, ignore in (("qwen2", r"\p{N}", True, False), ("llama3", r"\p{N}{1,3}", False, True)):
    t = Tokenizer(models.BPE(ignore_merges=ignore))
    if nfc: t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(W.replace("@", numbers)), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.train_from_iterator(train, trainers.BpeTrainer(vocab_size=340, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens([AddedToken("<|end|>", special=True, normalized=False)])
    if name == "llama3":
        t.add_special_tokens([AddedToken("<|begin|>", special=True, normalized=False)])
        t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", t.token_to_id("<|begin|>"))])])
    else:
        t.post_processor = processors.ByteLevel(trim_offsets=False)
    cases = [[s, t.encode(s).ids] for s in texts if not nfc or "\u0301" not in s]
    out[name] = {"tokenizer": json.loads(t.to_str()), "cases": cases}
print(json.dumps({"made_by": f"tokenizers {tokenizers.__version__}"} | out, ensure_ascii=True, separators=(",", ":")))
