"""Function words that say nothing of what a turn is about.

Closed classes only: articles, pronouns, auxiliaries, prepositions, conjunctions, question words. Anything
that could be the subject of a question stays; a common word that is not here weighs little anyway.
"""

from __future__ import annotations

__all__ = ["STOP_WORDS"]

_WORDS = {
    "english": """
        a an the this that these those i me my mine myself you your yours yourself yourselves he him his
        himself she her hers herself it its itself we us our ours ourselves they them their theirs
        themselves am is are was were be been being have has had having do does did doing done will would
        shall should can could may might must and or but nor so yet if because as until while of at by for
        with about against between into through during before after above below to from up down in out on
        off over under again further then once here there when where why how who whom whose which what all
        any both each few more most other some such no not only own same than too very just also ever im
        ive ill id youre youve youll hes shes theyre weve dont doesnt didnt isnt arent wasnt werent wont
        wouldnt cant couldnt shouldnt havent hasnt hadnt s t d ll m re ve""",
    "german": """
        der die das den dem des ein eine einer eines einem einen ich mich mir mein meine du dich dir dein
        deine er ihn ihm sein seine sie ihr ihre es wir uns unser euch euer ihnen man sich bin bist ist
        sind seid war waren gewesen werde wirst wird werden wurde habe hast hat haben hatte hatten kann
        können konnte muss müssen soll sollen will wollen darf und oder aber denn weil dass daß ob wenn
        als wie so doch noch nur auch nicht kein keine keiner von zu zum zur mit nach bei beim aus an am
        auf in im ins für über unter vor hinter durch gegen ohne um bis seit wer wen wem wessen was wo
        wann warum welche welcher welches dies diese dieser dieses jener da dort hier sehr schon mal""",
    "french": """
        le la les l un une des du de d au aux ce cet cette ces je j me m moi mon ma mes tu te t toi ton ta
        tes il elle on se s son sa ses nous notre nos vous votre vos ils elles leur leurs y en suis es est
        sommes êtes sont était étaient été être ai as a avons avez ont avait avaient avoir fait et ou mais
        donc or ni car que qu qui quoi dont où quand comment pourquoi quel quelle quels quelles si comme
        ne n pas plus par pour dans sur sous avec sans chez vers entre très aussi c""",
    "spanish": """
        el la los las lo un una unos unas de del a al yo me mí mi mis tú te ti tu tus él ella ello se sí
        su sus nosotros nos nuestro nuestra vosotros os vuestro ellos ellas les le es soy eres somos son
        era eran fue fueron sido ser estoy está están estaba estar he has ha hemos han había haber y e o u
        pero ni que quien quienes cual cuales cuando donde dónde cuándo cómo como qué quién por para en
        con sin sobre entre hasta desde si no muy más ya también este esta estos estas ese esa esos esas
        eso esto""",
    "portuguese": """
        o a os as um uma uns umas de do da dos das em no na nos nas ao aos à às por pelo pela pelos pelas
        para com sem sobre entre até desde eu me mim meu minha meus minhas tu te ti teu tua teus tuas você
        vocês ele ela eles elas se si seu sua seus suas nós nosso nossa lhe lhes é sou és somos são era
        eram foi foram sido ser estou está estão estava estar tenho tem têm tinha ter há e ou mas nem que
        quem qual quais quando onde como porque não muito mais já também este esta estes estas esse essa
        esses essas isso isto aquele aquela""",
    "italian": """
        il lo la i gli le l un uno una di del dello della dei degli delle d a al allo alla ai agli alle da
        dal dalla dai in nel nella nei con su sul sulla per tra fra io mi me mio mia miei mie tu ti te tuo
        tua lui lei egli essa si suo sua suoi sue noi ci nostro voi vi vostro loro sono sei è siamo siete
        era erano stato essere ho hai ha abbiamo avete hanno aveva avere e ed o ma né se che chi cui quale
        quali quando dove come perché non più molto anche già questo questa questi queste quello quella""",
    "dutch": """
        de het een ik me mij mijn jij je jou jouw hij hem zijn zij ze haar wij we ons onze jullie hun hen
        u uw ben bent is was waren geweest worden wordt werd heb hebt heeft hebben had hadden kan kunnen
        zal zullen zou en of maar want omdat dat die dit deze als dan toen wie wat waar wanneer waarom hoe
        welke niet geen ook nog wel er aan bij door in met na naar om op over te tot uit van voor zonder""",
    "russian": """
        и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по ее её мне было вот
        от меня о из ему для мы их чем была были быть есть ли если или ни до когда где кто это этот эта
        эти этого том тот мой моя мои твой свой наш ваш при об под над без себя нас вас им ей них тебя
        который которая которые почему зачем какой какая какие чтобы уже ещё еще""",
    "arabic": """
        في من على إلى عن مع هذا هذه ذلك تلك الذي التي الذين هو هي هم هن أنا أنت نحن انا انت كان كانت يكون
        قد لقد لا لم لن ما ماذا متى أين اين كيف لماذا هل أن ان إن أو او و ثم كل بعد قبل عند حتى""",
}
STOP_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split()) for language, words in _WORDS.items()
}
"""Function words by the name of their language; a language without a list has none."""
